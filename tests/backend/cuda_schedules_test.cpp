// What only stand-in GPUs can show: that no order of events changes a number.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "core/order.h"
#include "cuda/backend.h"
#include "cuda/distort_math.h"
#include "tests/backend/problem.h"
#include "tests/cuda_host/control.h"
#include "tests/reference/compare.h"
#include "tests/support.h"

namespace towers::test {
namespace {

using reference::doubles;

constexpr int kTowers = 4, kSteps = 3;

// TOWERS_SCHEDULES in the environment, else 80; under sanitizers each takes several times as long.
std::uint64_t schedules() {
  if (const char* count = std::getenv("TOWERS_SCHEDULES")) return std::strtoull(count, nullptr, 10);
#if defined(TOWERS_SANITIZED)
  return 20;
#else
  return 80;
#endif
}

struct Outcome {
  std::vector<float> variables, averages, gradients, losses;
  bool operator==(const Outcome&) const = default;
};

// Three steps of `towers` towers over one problem's images each step. Batches are spoilt as soon as
// that is allowed.
Outcome run(const cuda_host::Settings& settings, const std::vector<Problem>& problems, int towers) {
  cuda_host::start(settings);
  Outcome outcome;
  {
    const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
    const int size = problems[0].size() / towers;
    const std::unique_ptr<Towers> run = compile({}, *backend, problems[0], size, towers);
    std::vector<HostBatch> hosts;
    std::vector<Batch> batches;
    for (int t = 0; t < towers; ++t) {
      hosts.emplace_back(*backend, problems[0], t * size, size);
      batches.push_back(hosts.back().get());
    }
    for (const Problem& problem : problems) {
      for (std::size_t t = 0; t < hosts.size(); ++t) {
        const std::size_t values = static_cast<std::size_t>(size) * problem.net.input.size();
        std::copy_n(problem.images.begin() + static_cast<std::ptrdiff_t>(t * values), values,
                    hosts[t].images());
      }
      run_step(*run, batches);
      for (HostBatch& host : hosts) host.images()[0] = NAN;
    }
    for (const Losses& losses : run->report().towers) outcome.losses.push_back(losses.total);
    CHECK_FALSE(run->report().non_finite.has_value());
    outcome.variables = variables_of(*run, problems[0]);
    outcome.averages = averages_of(*run, problems[0]);
    outcome.gradients = gradients_of(*run, problems[0]);
  }
  for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
  return outcome;
}

// The same variables and labels, other images for each step.
std::vector<Problem> problems_of(const Net& net) {
  std::vector<Problem> problems(kSteps, draw_problem(net, kTowers));
  for (std::size_t s = 1; s < problems.size(); ++s)
    problems[s].images = draw_problem(net, kTowers, static_cast<unsigned>(s) + 1).images;
  return problems;
}

void check_schedules(int devices) {
  const std::vector<Problem> problems = problems_of(net_of_two_buckets());
  const Outcome whole = run({}, problems, 1);
  const Outcome first = run({.devices = devices}, problems, kTowers);
  check_flat(problems[0], "value", first.variables, doubles(whole.variables), kTolerance);
  check_flat(problems[0], "average", first.averages, doubles(whole.averages), kTolerance);
  check_flat(problems[0], "gradient", first.gradients, doubles(whole.gradients), kTolerance);
  for (std::uint64_t seed = 1; seed < schedules(); ++seed) {
    CAPTURE(devices, seed);
    const bool same = run({.devices = devices, .seed = seed}, problems, kTowers) == first;
    REQUIRE(same);
  }
}

TEST_CASE("many orders of events on one GPU give one result") {
  check_schedules(1);
}
TEST_CASE("many orders of events on two GPUs give one result") {
  check_schedules(2);
}
TEST_CASE("many orders of events on four GPUs give one result") {
  check_schedules(4);
}

TEST_CASE("many orders of events give one result where a whole step is one graph") {
  const std::vector<Problem> problems = problems_of(net_of_two_buckets());
  const Outcome first = run({}, problems, 1);
  for (std::uint64_t seed = 1; seed < schedules() / 4; ++seed)
    for (const bool names_kernels : {true, false}) {  // else the update is enqueued by itself
      CAPTURE(seed, names_kernels);
      REQUIRE(run({.seed = seed, .names_kernels = names_kernels}, problems, 1) == first);
    }
  const Outcome apart = run({.devices = 2}, problems, 2);
  CHECK(run({.devices = 2, .names_kernels = false}, problems, 2) == apart);
}

TEST_CASE("many orders of events give one gradient, and in float16 without its scale") {
  const Problem problem = draw_problem(small_net({1, 1, 6}, {}), 2);
  std::vector<float> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    cuda_host::start({.seed = seed});
    {
      const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
      BackendUnderTest row;
      row.options.precision = Precision::fp16;
      const std::unique_ptr<Towers> towers = compile(row, *backend, problem, 2);
      const HostBatch host(*backend, problem);
      towers->compute_gradients({&host.get(), 1}, false);
      const std::vector<float> gradients = gradients_of(*towers, problem);
      if (first.empty()) first = gradients;
      CHECK(gradients == first);
    }
    for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
  }
}

TEST_CASE("what was written to towers and inference may be overwritten at once") {
  const Problem problem = draw_problem(net_of_two_buckets(), 1);
  std::vector<float> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    cuda_host::start({.seed = seed});
    {
      const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
      const std::unique_ptr<Towers> towers = compile({}, *backend, problem, 1);
      std::vector<float> variables = problem.variables, averages = problem.averages;
      towers->write_variables(variables, averages);
      std::fill(variables.begin(), variables.end(), NAN);
      std::fill(averages.begin(), averages.end(), NAN);
      CHECK(variables_of(*towers, problem) == problem.variables);
      CHECK(averages_of(*towers, problem) == problem.averages);

      const std::unique_ptr<Inference> inference =
          backend->compile_inference(problem.net, 1, Precision::fp32, 0);
      variables = problem.variables;
      inference->write_variables(variables);
      std::fill(variables.begin(), variables.end(), NAN);
      const HostBatch host(*backend, problem);
      std::vector<float> logits(3, NAN);
      inference->logits(host.get(), logits);
      if (first.empty()) first = logits;
      CHECK(logits == first);
      CHECK(std::isfinite(logits[0]));
    }
    for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
  }
}

// Steps of four towers on records of three epochs, in the form given, spoilt as soon as that is
// allowed.
std::vector<float> run_input(const cuda_host::Settings& settings, InputForm form) {
  constexpr std::uint64_t kSize = 5, kSeed = 3;
  cuda_host::start(settings);
  const Problem problem = draw_problem(small_net({24, 24, 3}, {}), 1);
  std::vector<float> variables;
  {
    const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
    const std::unique_ptr<Towers> towers = compile({}, *backend, problem, 1, kTowers);
    std::vector<std::uint8_t> records(kSize * cuda::kRecordBytes);
    for (std::size_t i = 0; i < records.size(); ++i)
      records[i] = static_cast<std::uint8_t>(i % cuda::kRecordBytes == 0 ? i % 3 : i * i >> 3);
    std::vector<std::uint8_t> gone = records;
    CHECK(towers->make_input(form, {gone, kSeed}));
    std::ranges::fill(gone, std::uint8_t{0});

    EpochOrders orders(kSeed, kSize);
    const auto memory = backend->allocate(kTowers * cuda::kRecordBytes);
    auto* host = static_cast<std::uint8_t*>(memory.get());
    for (std::uint64_t position = 0; position < 3 * kTowers;) {
      std::vector<Batch> batches;
      for (std::size_t t = 0; t < kTowers; ++t, ++position) {
        std::uint8_t* record = host + t * cuda::kRecordBytes;
        const std::uint64_t example = (*orders.get(position / kSize))[position % kSize];
        std::copy_n(&records[example * cuda::kRecordBytes], cuda::kRecordBytes, record);
        batches.push_back({.size = 1,
                           .records = form == InputForm::records ? record : nullptr,
                           .position = position});
      }
      run_step(*towers, batches);
      std::fill_n(host, kTowers * cuda::kRecordBytes, std::uint8_t{255});
    }
    variables = variables_of(*towers, problem);
  }
  for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
  return variables;
}

TEST_CASE("many orders of events give one result where the GPUs make the input") {
  for (const int devices : {1, 2}) {
    const std::vector<float> first = run_input({.devices = devices}, InputForm::records);
    for (std::uint64_t seed = 1; seed < schedules() / 2; ++seed) {
      CAPTURE(devices, seed);
      const bool records =
          run_input({.devices = devices, .seed = seed}, InputForm::records) == first;
      const bool held =
          run_input({.devices = devices, .seed = seed}, InputForm::positions) == first;
      REQUIRE(records);
      REQUIRE(held);
    }
  }
}

TEST_CASE("towers may go while their step is under way") {
  const std::vector<Problem> problems = problems_of(net_of_two_buckets());
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    cuda_host::start({.devices = 2, .seed = seed});
    {
      const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
      const HostBatches batches(*backend, problems[0], kTowers);
      const std::unique_ptr<Towers> towers = compile({}, *backend, problems[0], 1, kTowers);
      run_step(*towers, batches.get());
    }
    for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
  }
}

}  // namespace
}  // namespace towers::test
