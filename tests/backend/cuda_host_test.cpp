// What only stand-in GPUs can show of a backend: what it allocates, waits for, says and refuses,
// and what happens where memory is short.

#include <catch2/catch.hpp>
#include <stdexcept>

#include "core/error.h"
#include "core/models/cifar10.h"
#include "cuda/backend.h"
#include "cuda/distort_math.h"
#include "tests/backend/problem.h"
#include "tests/cuda_host/control.h"
#include "tests/support.h"

namespace towers::test {
namespace {

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
