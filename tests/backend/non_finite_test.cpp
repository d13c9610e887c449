// A value that is not finite is reported at the step that meets it, wherever it is: relu and max
// pooling can swallow one, so a finite loss proves nothing.

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "tests/backend/problem.h"

namespace towers::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("a value that is not finite in any variable or average is reported at that step") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    const Problem problem = draw_problem(reduced_cifar10_net(), 3);
    const HostBatch host(backend, problem);
    for (const Variable& v : problem.layout.variables())
      for (const float poison : {kNan, kInfinity, -kInfinity})
        for (const std::size_t where : {v.offset, v.offset + v.size - 1})
          for (const bool in_average : {false, true}) {
            CAPTURE(v.name, poison, where - v.offset, in_average);
            const std::unique_ptr<Towers> fresh = compile(row, backend, problem, 3);
            std::vector<float> variables = problem.variables, averages = problem.averages;
            (in_average ? averages : variables)[where] = poison;
            fresh->write_variables(variables, averages);
            run_step(*fresh, {&host.get(), 1});
            const StepReport& report = fresh->report();
            REQUIRE(report.non_finite.has_value());
            CHECK(fresh->diverged());
            // It was there before the gradients, so it is named and not what came of it.
            CHECK(report.non_finite->what.starts_with(v.name));
            CHECK(report.non_finite->tower == -1);
          }
  });
}

TEST_CASE("a value that is not finite in an image is reported at that step, with its tower") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    const Problem problem = draw_problem(reduced_cifar10_net(), 4);
    for (const float poison : {kNan, kInfinity, -kInfinity})
      for (const std::size_t where :
           {std::size_t{0}, std::size_t{850}, 2 * problem.net.input.size() - 1})
        for (const int tower : {0, 1}) {
          CAPTURE(poison, where, tower);
          const std::unique_ptr<Towers> towers = compile(row, backend, problem, 2, 2);
          HostBatch first(backend, problem, 0, 2), second(backend, problem, 2, 2);
          const std::vector<Batch> batches{first.get(), second.get()};
          run_step(*towers, batches);
          REQUIRE_FALSE(towers->report().non_finite.has_value());
          CHECK_FALSE(towers->diverged());
          (tower == 0 ? first : second).images()[where] = poison;
          run_step(*towers, batches);
          REQUIRE(towers->report().non_finite.has_value());
          CHECK(towers->report().non_finite->tower == tower);
          CHECK(towers->report().non_finite->good_steps == 1);
          // It stays so, and stays the first.
          (tower == 0 ? first : second).images()[where] = 0;
          run_step(*towers, batches);
          REQUIRE(towers->report().non_finite.has_value());
          CHECK(towers->report().non_finite->good_steps == 1);
        }
  });
}

TEST_CASE("a NaN anywhere in the window of a max pool is not lost among its numbers") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    // Nothing before the pool has a gradient that would tell. 4 x 4 and 5 x 5 pixels of 20
    // channels.
    for (const MaxPool& pool : {MaxPool{3, 2}, MaxPool{2, 2}, MaxPool{3, 1}})
      for (const int side : {4, 5}) {
        const Problem problem = draw_problem(small_net({side, side, 20}, {{"pool", pool}}), 1);
        for (int pixel = 0; pixel < side * side; ++pixel)
          for (const int channel : {0, 19}) {
            CAPTURE(pool.size, pool.stride, side, pixel, channel);
            const std::unique_ptr<Towers> towers = compile(row, backend, problem, 1);
            HostBatch batch(backend, problem);
            batch.images()[static_cast<std::size_t>(20 * pixel + channel)] = kNan;
            const std::vector<Batch> batches{batch.get()};
            run_step(*towers, batches);
            CHECK(towers->report().non_finite.has_value());
          }
      }
  });
}

TEST_CASE("a variable that overflows in the update is reported, by name and with no tower") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    const Problem problem = draw_problem(reduced_cifar10_net(), 3);
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 3);
    const HostBatch host(backend, problem);
    towers->compute_gradients({&host.get(), 1}, false);
    towers->average_gradients();
    towers->apply_gradients(kInfinity, 0.9f);
    REQUIRE(towers->report().non_finite.has_value());
    CHECK(towers->report().non_finite->tower == -1);
    CHECK(towers->report().non_finite->what.find("conv1/weights") != std::string::npos);
  });
}

TEST_CASE("a loss that alone overflows is reported") {
  // A large weight that only zeros meet: its square overflows, its gradient does not.
  const Net net = small_net(
      {1, 1, 4},
      {{"dense", Dense{.outputs = 3}, {.weights_stddev = 0, .biases = 0, .weight_decay = 0.01}}});
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    Problem problem = draw_problem(net, 2);
    problem.variables[problem.layout.find("dense/weights").offset] = 1e25f;
    std::fill(problem.images.begin(), problem.images.end(), 0.0f);
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 2);
    const HostBatch host(backend, problem);
    run_step(*towers, {&host.get(), 1});
    REQUIRE(towers->report().non_finite.has_value());
    CHECK(towers->report().non_finite->what.empty());
    CHECK(towers->report().non_finite->tower == 0);
  });
}

TEST_CASE("large but finite values are not reported") {
  for_each_backend([](const BackendUnderTest& row, Backend& backend) {
    Problem problem = draw_problem(reduced_cifar10_net(), 3);
    problem.averages[problem.layout.find("local4/weights").offset] = 3e38f;
    problem.averages[problem.layout.find("local3/weights").offset] = 1e-42f;
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 3);
    const HostBatch host(backend, problem);
    run_step(*towers, {&host.get(), 1});
    CHECK_FALSE(towers->report().non_finite.has_value());
  });
}

}  // namespace
}  // namespace towers::test
