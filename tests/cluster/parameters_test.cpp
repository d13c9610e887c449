// How gradients become updates.
#include "cluster/parameters.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace towers::cluster;

namespace {

constexpr std::uint64_t kSession = 7;

// A learning rate of a half at all steps.
UpdateRules with_half(UpdateRules rules) {
  rules.schedule.learning_rate = 0.5f;
  return rules;
}

Parameters initialized(int workers, const UpdateRules& rules, std::vector<float> values = {1, 2},
                       std::int64_t step = 0) {
  Parameters parameters(workers);
  parameters.initialize(kSession, {.step = step}, values, with_half(rules));
  return parameters;
}

PushOutcome push(Parameters& parameters, int worker, std::int64_t step,
                 const std::vector<float>& gradient, std::uint64_t session = kSession) {
  std::copy(gradient.begin(), gradient.end(), parameters.begin_gradient(worker).begin());
  return parameters.push(worker, session, step);
}

std::vector<float> values_of(const Parameters& parameters) {
  return {parameters.values().begin(), parameters.values().end()};
}

}  // namespace

TEST_CASE("asynchronous: each push is an update, from however old variables") {
  Parameters parameters = initialized(2, {.synchronous = false, .replicas_to_aggregate = 2});
  CHECK(push(parameters, 0, 0, {2, 4}) == PushOutcome::applied);
  CHECK(push(parameters, 1, 0, {2, 0}) == PushOutcome::applied);
  CHECK(parameters.step() == 2);
  CHECK(values_of(parameters) == std::vector<float>{-1, 0});
  CHECK(parameters.dropped() == 0);
}

TEST_CASE("synchronous: an update is the mean of one gradient of each worker") {
  Parameters parameters = initialized(3, {.synchronous = true, .replicas_to_aggregate = 3});
  CHECK(push(parameters, 2, 0, {6, 0}) == PushOutcome::pending);
  CHECK(push(parameters, 0, 0, {0, 3}) == PushOutcome::pending);
  CHECK(parameters.step() == 0);
  CHECK(parameters.is_pending(2));
  CHECK_FALSE(parameters.is_pending(1));
  CHECK(push(parameters, 1, 0, {3, 3}) == PushOutcome::applied);
  CHECK(parameters.step() == 1);
  CHECK(values_of(parameters) == std::vector<float>{1 - 0.5f * 3, 2 - 0.5f * 2});
  CHECK_FALSE(parameters.is_pending(2));
}

TEST_CASE("synchronous: a second gradient of one worker takes the place of its first") {
  Parameters parameters = initialized(2, {.synchronous = true, .replicas_to_aggregate = 2});
  CHECK(push(parameters, 0, 0, {100, 100}) == PushOutcome::pending);
  CHECK(push(parameters, 0, 0, {2, 0}) == PushOutcome::pending);
  CHECK(parameters.step() == 0);
  CHECK(push(parameters, 1, 0, {0, 0}) == PushOutcome::applied);
  CHECK(values_of(parameters) == std::vector<float>{0.5f, 2});
}

TEST_CASE("synchronous: the mean does not depend on who came first") {
  const std::vector<std::vector<float>> gradients{{1e8f, 1}, {1, 1e8f}, {-1e8f, -1e8f}};
  std::vector<int> order{0, 1, 2};
  std::vector<float> first;
  do {
    Parameters parameters = initialized(3, {.synchronous = true, .replicas_to_aggregate = 3});
    for (int worker : order)
      push(parameters, worker, 0, gradients[static_cast<std::size_t>(worker)]);
    REQUIRE(parameters.step() == 1);
    if (first.empty()) first = values_of(parameters);
    CHECK(values_of(parameters) == first);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("synchronous: the gradients of backup workers are dropped and counted") {
  Parameters parameters = initialized(3, {.synchronous = true, .replicas_to_aggregate = 2});
  push(parameters, 0, 0, {2, 2});
  CHECK(push(parameters, 1, 0, {2, 2}) == PushOutcome::applied);
  const auto before = values_of(parameters);
  CHECK(push(parameters, 2, 0, {50, 50}) == PushOutcome::stale);
  CHECK(parameters.dropped() == 1);
  CHECK(values_of(parameters) == before);
  CHECK(push(parameters, 2, 1, {2, 2}) == PushOutcome::pending);
}

TEST_CASE("synchronous: an update waits for those who are left, and no more") {
  Parameters parameters = initialized(3, {.synchronous = true, .replicas_to_aggregate = 3});
  push(parameters, 0, 0, {2, 2});
  push(parameters, 2, 0, {90, 90});
  parameters.forget(2);  // lost before the update
  parameters.set_expected(2);
  CHECK(parameters.step() == 0);
  CHECK(push(parameters, 1, 0, {2, 2}) == PushOutcome::applied);
  CHECK(values_of(parameters) == std::vector<float>{0, 1});

  push(parameters, 0, 1, {2, 2});
  parameters.set_expected(1);
  CHECK(parameters.step() == 2);
  CHECK_FALSE(parameters.is_pending(0));
  parameters.set_expected(0);  // all gone: no update of nothing
  CHECK(parameters.step() == 2);
}

TEST_CASE("a new session drops what belongs to an earlier one") {
  Parameters parameters(2);
  CHECK(parameters.session() == 0);
  CHECK(push(parameters, 0, 0, {}, 0) == PushOutcome::other_session);
  const std::vector<float> values{1, 2};
  const UpdateRules rules{.synchronous = true, .replicas_to_aggregate = 2};
  parameters.initialize(kSession, {.step = 10}, values, rules);
  CHECK(push(parameters, 0, 10, {9, 9}) == PushOutcome::pending);
  CHECK(push(parameters, 1, 9, {9, 9}) == PushOutcome::stale);
  parameters.initialize(kSession + 1, {.step = 3}, values, rules);
  CHECK(parameters.step() == 3);
  CHECK(parameters.dropped() == 0);
  CHECK_FALSE(parameters.is_pending(0));
  CHECK(push(parameters, 1, 3, {9, 9}) == PushOutcome::other_session);
  CHECK(push(parameters, 1, 3, {2, 2}, kSession + 1) == PushOutcome::pending);
  CHECK(values_of(parameters) == values);
}

TEST_CASE("a gradient that began in a session of another size is not used") {
  Parameters parameters = initialized(1, {});
  parameters.begin_gradient(0);
  const std::vector<float> more{1, 2, 3};
  parameters.initialize(kSession, {}, more, {});
  CHECK(parameters.push(0, kSession, 0) == PushOutcome::other_session);
  CHECK(values_of(parameters) == more);
}

TEST_CASE("the learning rate and the averages' decay follow the count of updates") {
  Parameters parameters(1);
  const UpdateRules rules{.synchronous = false,
                          .replicas_to_aggregate = 1,
                          .schedule = {.learning_rate = 0.5f,
                                       .learning_rate_decay = 0.5f,
                                       .decay_steps = 11,
                                       .moving_average_decay = 0.25f},
                          .moving_averages = true};
  const std::vector<float> state{1, 2, 8, 16};  // the averages behind the values
  parameters.initialize(kSession, {.step = 10}, state, rules);
  CHECK(push(parameters, 0, 10, {2, 4}) == PushOutcome::applied);  // step 10: a rate of 0.5
  CHECK(values_of(parameters) == std::vector<float>{0, 0});
  const std::vector<float> averages{parameters.averages().begin(), parameters.averages().end()};
  CHECK(averages == std::vector<float>{2, 4});  // a quarter, since (1 + 11) / (10 + 11) is more
  CHECK(push(parameters, 0, 11, {4, 8}) == PushOutcome::applied);  // step 11: of 0.25
  CHECK(values_of(parameters) == std::vector<float>{-1, -2});
  CHECK(parameters.start().step == 10);
}
