// What only stand-in GPUs can show: that no order of events changes a number, and what happens
// where memory is short.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "core/error.h"
#include "core/models/cifar10.h"
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

TEST_CASE("a GPU on which no tower runs is left alone") {
  cuda_host::start({.devices = 3});
  {
    const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
    cuda_host::take_contexts();  // of asking each for its memory, for want of NVML
    const Problem problem = draw_problem(small_net({24, 24, 3}, {}), 1);
    CompileOptions options;
    options.batch_size = 1;
    options.device_of_tower = {2};
    const std::unique_ptr<Towers> towers = backend->compile(problem.net, options);
    towers->write_variables(problem.variables, problem.averages);
    const HostBatch host(*backend, problem);
    run_step(*towers, {&host.get(), 1});
    const std::vector<std::uint8_t> records(cuda::kRecordBytes);
    CHECK(towers->make_input(InputForm::positions, {records, 1}));
    towers->report();
    CHECK(cuda_host::take_contexts() == std::vector<int>{2});
    backend->compile_inference(problem.net, 1, Precision::fp32, 1);
    CHECK(cuda_host::take_contexts() == std::vector<int>{1});
    run_step(*towers, {&host.get(), 1});
    CHECK(cuda_host::take_contexts() == std::vector<int>{1, 2});  // where it has been
  }
  for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
}

std::vector<std::string> g_debug_lines;

TEST_CASE("who debugs is told what computes each layer, and what a library said that does not") {
  const Problem problem =
      draw_problem(small_net({6, 6, 3}, {{"conv", Convolution{.outputs = 4}}}), 1);
  for (const bool has_engines : {true, false}) {
    cuda_host::start({.has_engines = has_engines});
    g_debug_lines.clear();
    {
      const std::unique_ptr<Backend> backend = cuda::make_cuda_backend(
          {.debug = [](const std::string& line) { g_debug_lines.push_back(line); }});
      compile({}, *backend, problem, 1);
      backend->compile_inference(problem.net, 1, Precision::fp32, 0);
    }
    for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
    std::vector<std::string> told{"conv by cuDNN", "logits by plain loops", "conv by cuDNN",
                                  "logits by plain loops"};
    if (!has_engines)
      told.insert(told.begin() + 1, "conv, refused: weight gradient: no engine of the stand-in");
    CHECK(g_debug_lines == told);
  }
}

std::vector<std::string> g_warnings;

TEST_CASE("a convolution that cuDNN has no engine for is told, once") {
  const Problem problem =
      draw_problem(small_net({6, 6, 3}, {{"conv", Convolution{.outputs = 4}}}), 2);
  for (const char* convolution : {"auto", "direct"})
    for (const bool has_engines : {true, false}) {
      CAPTURE(convolution, has_engines);
      g_warnings.clear();
      cuda_host::start({.devices = 2, .has_engines = has_engines});
      {
        const std::unique_ptr<Backend> backend = cuda::make_cuda_backend(
            {.warning = [](const std::string& line) { g_warnings.push_back(line); }});
        BackendUnderTest row;
        row.options.convolution = convolution;
        for (int time = 0; time < 2; ++time) compile(row, *backend, problem, 1, 2);
      }
      for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
      const std::vector<std::string> told{
          "cuDNN has no engine that runs here in fp32 for conv (weight gradient): the module's own "
          "kernels take its place, many times slower (cuDNN says: weight gradient: no engine of "
          "the stand-in)"};
      CHECK(g_warnings ==
            (has_engines || convolution[0] == 'd' ? std::vector<std::string>() : told));
    }
}

TEST_CASE("that updates are enqueued by themselves is told, once") {
  const Problem problem = draw_problem(small_net({1, 1, 6}, {}), 2);
  for (const int devices : {1, 2})
    for (const bool names_kernels : {true, false}) {
      CAPTURE(devices, names_kernels);
      g_warnings.clear();
      cuda_host::start({.devices = devices, .names_kernels = names_kernels});
      {
        const std::unique_ptr<Backend> backend = cuda::make_cuda_backend(
            {.warning = [](const std::string& line) { g_warnings.push_back(line); }});
        for (int time = 0; time < 2; ++time) compile({}, *backend, problem, 1, devices);
      }
      for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
      REQUIRE(g_warnings.size() == (names_kernels ? 0 : 1));
      if (!names_kernels) CHECK_THAT(g_warnings[0], Catch::Contains("enqueued by itself"));
    }
}

TEST_CASE(
    "a net that does not fit says what to lower, leaves nothing behind and may be made smaller") {
  cuda_host::start({.devices = 2, .memory = 40 << 20});
  {
    const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
    CHECK(backend->description() == "2 GPUs, stand-in GPU");
    CompileOptions options;
    options.device_of_tower = {0, 1};
    CHECK_THROWS_WITH(
        backend->compile(cifar10_net(), options),
        Catch::Matches("out of memory on GPU 0 \\(stand-in GPU\\): [0-9.]+ MiB more wanted, "
                       "[0-9.]+ MiB of 40\\.0 MiB free; lower --batch_size, or run fewer towers on "
                       "each GPU \\(--num_gpus\\)"));
    options.batch_size = 2;
    CHECK_NOTHROW(backend->compile(cifar10_net(), options));
    CHECK_THROWS_WITH(backend->allocate(std::size_t{1} << 40), Catch::Contains("--batch_size"));
  }
  for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
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

TEST_CASE("a step allocates nothing, and waits at most for its batch to be read") {
  constexpr int kMoreSteps = 5;
  for (const int devices : {1, 2})
    for (const Precision precision : {Precision::fp32, Precision::fp16})
      for (const InputForm form : {InputForm::positions, InputForm::records}) {
        CAPTURE(devices, to_string(precision), static_cast<int>(form));
        cuda_host::start({.devices = devices});
        {
          const Problem problem = draw_problem(small_net({24, 24, 3}, {}), 1);
          const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
          BackendUnderTest row;
          row.options.precision = precision;
          const std::unique_ptr<Towers> towers = compile(row, *backend, problem, 1, 2);
          const auto memory = backend->allocate(32 * cuda::kRecordBytes);
          const auto* host = static_cast<const std::uint8_t*>(memory.get());
          CHECK(towers->make_input(form, {{host, 32 * cuda::kRecordBytes}, 1}));
          const auto step = [&](std::uint64_t s) {
            const std::uint8_t* records = form == InputForm::records ? host : nullptr;
            const Batch batches[2] = {{.size = 1, .records = records, .position = 2 * s},
                                      {.size = 1, .records = records, .position = 2 * s + 1}};
            run_step(*towers, batches);
          };
          step(0);  // brings the order of the epoch
          cuda_host::take_host_calls();
          for (std::uint64_t s = 1; s <= kMoreSteps; ++s) step(s);
          const cuda_host::HostCalls calls = cuda_host::take_host_calls();
          CHECK(calls.allocations == 0);
          CHECK(calls.waits <= (form == InputForm::records ? kMoreSteps : 0));
          CHECK_FALSE(towers->report().non_finite.has_value());
        }
        for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
      }
}

TEST_CASE("profilers are told the phases of a step") {
  const Problem problem = draw_problem(small_net({1, 1, 6}, {}), 2);
  for (const int devices : {1, 2}) {
    cuda_host::start({.devices = devices});
    {
      const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
      const std::unique_ptr<Towers> towers = compile(BackendUnderTest(), *backend, problem, 1, 2);
      const HostBatches batches(*backend, problem, 2);
      cuda_host::take_ranges();
      run_step(*towers, batches.get());
      std::vector<std::string> told{"towers: compute_gradients", "end"};
      if (devices == 2) told.insert(told.end(), {"towers: average_gradients", "end"});
      told.insert(told.end(), {"towers: apply_gradients", "end"});
      CHECK(cuda_host::take_ranges() == told);
      towers->report();
      CHECK(cuda_host::take_ranges() ==
            std::vector<std::string>{"towers: report, waits for the GPUs", "end"});
    }
    for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
  }
}

TEST_CASE("a training set that leaves too little of a GPU's memory is not held") {
  cuda_host::start({.devices = 2, .memory = std::size_t{200} << 20});
  {
    const Problem problem = draw_problem(small_net({24, 24, 3}, {}), 1);
    const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
    const std::unique_ptr<Towers> towers = compile({}, *backend, problem, 1, 2);
    const std::vector<std::uint8_t> records(2 * cuda::kRecordBytes);
    CHECK_FALSE(towers->make_input(InputForm::positions, {records, 1}));
    const Batch held[2] = {{.size = 1, .position = 0}, {.size = 1, .position = 1}};
    CHECK_THROWS_AS(towers->compute_gradients(held, false), std::invalid_argument);
    CHECK(towers->make_input(InputForm::records, {records, 1}));
  }
  for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
}

TEST_CASE("a training set takes the room of the one before it") {
  cuda_host::start({.devices = 2, .memory = std::size_t{280} << 20});
  {
    const Problem problem = draw_problem(small_net({24, 24, 3}, {}), 1);
    const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
    const std::unique_ptr<Towers> towers = compile({}, *backend, problem, 1, 2);
    // 12 MiB: once beside what is spared, not twice.
    const std::vector<std::uint8_t> records(4096 * cuda::kRecordBytes);
    for (const std::uint64_t seed : {1u, 2u, 3u})
      REQUIRE(towers->make_input(InputForm::positions, {records, seed}));
    const Batch held[2] = {{.size = 1, .position = 0}, {.size = 1, .position = 1}};
    CHECK_NOTHROW(run_step(*towers, held));
    // One that does not fit is not held, and no other is either.
    const std::vector<std::uint8_t> large(3 * records.size());
    CHECK_FALSE(towers->make_input(InputForm::positions, {large, 1}));
    CHECK_THROWS_AS(towers->compute_gradients(held, false), std::invalid_argument);
  }
  for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
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

TEST_CASE("bfloat16 is refused where a GPU has none, by name") {
  cuda_host::start({.devices = 2, .capability = 75});
  {
    const std::unique_ptr<Backend> backend = cuda::make_cuda_backend({});
    const Problem problem = draw_problem(small_net({1, 1, 6}, {}), 1);
    const auto refused = Catch::Equals(
        "--precision=bf16 needs a GPU of compute capability 8.0 or newer, and /gpu:1 (stand-in "
        "GPU) "
        "has 7.5; use --precision=fp16 or fp32");
    CompileOptions options;
    options.precision = Precision::bf16;
    options.device_of_tower = {1};
    CHECK_THROWS_WITH(backend->compile(problem.net, options), refused);
    CHECK_THROWS_WITH(backend->compile_inference(problem.net, 1, Precision::bf16, 1), refused);
    CHECK_NOTHROW(backend->compile_inference(problem.net, 1, Precision::fp16, 1));
  }
  for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
}

TEST_CASE("without a device there is no backend") {
  cuda_host::start({.devices = 0});
  CHECK_THROWS_AS(cuda::make_cuda_backend({}), Error);
  cuda_host::start({});
}

}  // namespace
}  // namespace towers::test
