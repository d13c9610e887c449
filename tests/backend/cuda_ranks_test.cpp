// Towers of several processes, which here are threads with GPUs of their own, on stand-in devices:
// what NCCL and MPI would bring together.

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "core/agreement.h"
#include "core/error.h"
#include "cuda/backend.h"
#include "tests/backend/problem.h"
#include "tests/cuda_host/control.h"
#include "tests/local_ranks.h"
#include "tests/reference/compare.h"

namespace towers::test {
namespace {

using reference::doubles;
using Thread = std::shared_ptr<CommunicationThread>;

constexpr int kTowers = 4, kSteps = 3;

struct Layout {
  int processes = 1, gpus = 1;  // of each process
  bool deterministic = false;
};

// What one process sees of a run of kTowers towers.
struct Outcome {
  std::vector<float> variables, averages, gradients, losses;
  std::optional<NonFinite> non_finite;
};
bool same(const Outcome& a, const Outcome& b) {
  return a.variables == b.variables && a.averages == b.averages && a.gradients == b.gradients &&
         a.losses == b.losses;
}

// One process's part of a run.
class Process {
 public:
  Process(const Problem& problem, const Layout& layout, const Thread& thread)
      : problem_(problem),
        rank_(thread ? thread->rank() : 0),
        own_(kTowers / layout.processes),
        backend_(cuda::make_cuda_backend({})) {
    CompileOptions options;
    options.batch_size = problem.size() / kTowers;
    options.deterministic = layout.deterministic;
    options.ranks = thread;
    for (int t = 0; t < own_; ++t)
      options.device_of_tower.push_back(rank_ * layout.gpus + t % layout.gpus);
    towers_ = backend_->compile(problem.net, options);
    towers_->write_variables(problem.variables, problem.averages);
    for (int t = 0; t < own_; ++t) {
      hosts_.emplace_back(*backend_, problem, (rank_ * own_ + t) * options.batch_size,
                          options.batch_size);
      batches_.push_back(hosts_.back().get());
    }
  }

  // Another image value in each step; the tower `bad` of the run gets one that is not finite.
  void step(int number, int bad = -1) {
    for (int t = 0; t < own_; ++t)
      hosts_[static_cast<std::size_t>(t)].images()[0] =
          rank_ * own_ + t == bad ? NAN : 0.1f * static_cast<float>(number);
    run_step(*towers_, batches_);
  }

  Outcome outcome() {
    Outcome outcome;
    for (const Losses& losses : towers_->report().towers) outcome.losses.push_back(losses.total);
    outcome.non_finite = towers_->report().non_finite;
    outcome.variables = variables_of(*towers_, problem_);
    outcome.averages = averages_of(*towers_, problem_);
    outcome.gradients = gradients_of(*towers_, problem_);
    return outcome;
  }

  Towers& towers() { return *towers_; }

 private:
  const Problem& problem_;
  int rank_, own_;
  std::unique_ptr<Backend> backend_;
  std::vector<HostBatch> hosts_;
  std::vector<Batch> batches_;
  std::unique_ptr<Towers> towers_;
};

void expect_no_faults() {
  for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
}

// Of each process. bad_tower: of the last step.
std::vector<Outcome> run(const Problem& problem, const Layout& layout, std::uint64_t seed,
                         int bad_tower = -1) {
  cuda_host::start(
      {.devices = layout.processes * layout.gpus, .seed = seed, .threads = layout.processes > 1});
  std::vector<Outcome> outcomes(static_cast<std::size_t>(layout.processes));
  const auto body = [&](const Thread& thread) {
    Process process(problem, layout, thread);
    for (int s = 0; s < kSteps; ++s) {
      process.step(s, s + 1 == kSteps ? bad_tower : -1);
      if (s == 0) process.towers().report();
    }
    outcomes[thread ? static_cast<std::size_t>(thread->rank()) : 0] = process.outcome();
  };
  if (layout.processes == 1)
    body(nullptr);
  else
    LocalRanks::run(layout.processes, body);
  expect_no_faults();
  return outcomes;
}

TEST_CASE("with --deterministic several processes give the bytes of one") {
  const Problem problem = draw_problem(net_of_two_buckets(), kTowers);
  const Outcome alone = run(problem, {.deterministic = true}, 0).front();
  CHECK(alone.losses.size() == kTowers);
  for (const Layout layout :
       {Layout{1, 4, true}, Layout{2, 1, true}, Layout{2, 2, true}, Layout{4, 1, true}})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const std::vector<Outcome> processes = run(problem, layout, seed);
      for (std::size_t p = 0; p < processes.size(); ++p) {
        CAPTURE(layout.processes, layout.gpus, seed, p);
        CHECK(same(processes[p], alone));
      }
    }
}

TEST_CASE("several processes train as one does, in every order of events") {
  const Problem problem = draw_problem(net_of_two_buckets(), kTowers);
  const Outcome alone = run(problem, {}, 0).front();
  for (const Layout layout : {Layout{2, 1}, Layout{2, 2}, Layout{4, 1}}) {
    const Outcome first = run(problem, layout, 0).front();
    check_flat(problem, "value", first.variables, doubles(alone.variables), kTolerance);
    check_flat(problem, "average", first.averages, doubles(alone.averages), kTolerance);
    check_flat(problem, "gradient", first.gradients, doubles(alone.gradients), kTolerance);
    CHECK(reference::relative_error(first.losses, alone.losses) <= kTolerance);
    for (std::uint64_t seed = 1; seed < 8; ++seed)
      for (const Outcome& process : run(problem, layout, seed)) {
        CAPTURE(layout.processes, layout.gpus, seed);
        CHECK(same(process, first));
      }
  }
}

TEST_CASE("what is not finite in a tower of one process is named on all") {
  const Problem problem = draw_problem(net_of_two_buckets(), kTowers);
  for (const Layout layout : {Layout{2, 1}, Layout{2, 2}, Layout{4, 1}, Layout{2, 2, true}})
    for (const Outcome& process : run(problem, layout, 5, 2)) {
      CAPTURE(layout.processes, layout.gpus, layout.deterministic);
      REQUIRE(process.non_finite);
      CHECK(process.non_finite->tower == 2);
      CHECK(process.non_finite->what.starts_with("gradient of conv"));
      CHECK(process.non_finite->good_steps == kSteps - 1);
    }
}

TEST_CASE("more towers than reports can number are refused") {
  cuda_host::start({});
  {
    const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
    CompileOptions options;
    options.batch_size = 1;
    options.device_of_tower.assign(4097, 0);
    CHECK_THROWS_AS(backend->compile(net_of_two_buckets(), options), UsageError);
  }
  expect_no_faults();
}

// What app/ranks.h does where a rank fails between steps.
[[noreturn]] void tell(const Thread& thread, const std::string& text) {
  const RankFailure failure{1, text, "rank " + std::to_string(thread->rank())};
  thread->run([&](Collective& collective) { agree(collective, 0, &failure); });
  throw std::logic_error("the agreement did not throw");
}

// What each rank ends with where rank 1 does `fail` and the others `go_on`.
std::vector<std::string> errors(int processes, const std::function<void(const Thread&)>& go_on,
                                const std::function<void(const Thread&)>& fail) {
  std::vector<std::string> errors(static_cast<std::size_t>(processes));
  LocalRanks::run(processes, [&](const Thread& thread) {
    try {
      thread->rank() == 1 ? fail(thread) : go_on(thread);
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(thread->rank())] = error.what();
    }
  });
  expect_no_faults();
  return errors;
}

TEST_CASE("a process that fails between steps ends the others, whose GPUs wait for it") {
  const Problem problem = draw_problem(net_of_two_buckets(), kTowers);
  for (const bool deterministic : {false, true})
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Layout layout{2, 2, deterministic};
      const int good_steps = static_cast<int>(seed % 2);  // none: the others are in their first
      cuda_host::start({.devices = 4, .seed = seed, .threads = true});
      const auto steps = [&](const Thread& thread, int count) {
        Process process(problem, layout, thread);
        for (int s = 0; s < count; ++s) {
          thread->post([](Collective& collective) { agree(collective, 0); });
          process.step(s);
          thread->wait();
        }
      };
      const auto ends = errors(
          2, [&](const Thread& thread) { steps(thread, kSteps); },
          [&](const Thread& thread) {
            steps(thread, good_steps);
            tell(thread, "no data");
          });
      CAPTURE(deterministic, seed);
      CHECK(ends == std::vector<std::string>(2, "rank 1: no data"));
    }
}

TEST_CASE("a process that fails at its start is heard by those that wait for its GPUs") {
  const Problem problem = draw_problem(net_of_two_buckets(), kTowers);
  cuda_host::start({.devices = 2, .threads = true});
  const auto compile = [&](const Thread& thread) { Process(problem, {2, 1}, thread); };
  const auto ends =
      errors(2, compile, [&](const Thread& thread) { tell(thread, "no GPU is visible"); });
  CHECK(ends == std::vector<std::string>(2, "rank 1: no GPU is visible"));
}

TEST_CASE("a process without memory for its towers is heard by those that wait for its GPUs") {
  const Problem problem = draw_problem(net_of_two_buckets(), kTowers);
  cuda_host::start({.devices = 2, .memory = std::size_t{1} << 20, .threads = true});
  const Layout layout{2, 1};
  const auto compile = [&](const Thread& thread) {
    try {
      Process(problem, layout, thread);
    } catch (const Error& error) {
      tell(thread, error.what());
    }
  };
  for (const std::string& end : errors(2, compile, compile))
    CHECK(end.starts_with("out of memory on GPU"));  // all of them: nobody's own
}

}  // namespace
}  // namespace towers::test
