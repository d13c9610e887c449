// Every precision of the CUDA module, on 1, 2 and 4 stand-in GPUs, or on those of the machine.
// float32 is the suite's.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "core/models/cifar10.h"
#include "tests/backend/gpus.h"
#include "tests/backend/problem.h"
#include "tests/reference/compare.h"
#include "tests/support.h"

namespace towers::test {
namespace {

using reference::doubles;

// A value that is stored in 16 bits is off by 2^-9 (bf16) or 2^-12 (fp16) of itself at most. A
// dozen of them follow each other in a gradient; a wrong term would leave ten times as much.
// Doubles are seen as floats here.
BackendUnderTest row_of(Precision precision) {
  BackendUnderTest row;
  row.name = to_string(precision);
  row.options.precision = precision;
  row.tolerance = precision == Precision::bf16   ? 12.0 / 512
                  : precision == Precision::fp16 ? 12.0 / 4096
                                                 : 2e-7;
  return row;
}

bool has_bf16(const Backend& backend) {
  return std::stod(backend.devices().front().compute_capability) >= 8;
}

// f(row, backend) in each precision. count: one of GpusUnderTest::counts.
void for_each_precision(const GpusUnderTest& gpus, int count,
                        const std::function<void(const BackendUnderTest&, Backend&)>& f) {
  for (const Precision precision : {Precision::fp64, Precision::bf16, Precision::fp16}) {
    const BackendUnderTest row = row_of(precision);
    const auto backend = gpus.make(count, static_cast<std::uint64_t>(count));
    INFO(row.name << " on " << count << " devices");
    if (precision != Precision::bf16 || has_bf16(*backend)) f(row, *backend);
  }
}

// With every number of devices, each with another order of events; skipped where there is none.
void for_each_placement(const std::function<void(const BackendUnderTest&, Backend&)>& f) {
  const GpusUnderTest gpus = gpus_under_test();
  if (gpus.counts.empty()) return skip(gpus.why_none);
  for (const int count : gpus.counts) for_each_precision(gpus, count, f);
}

std::vector<Problem> problems_of_all_layers() {
  const Parameters decayed{.weights_stddev = 0, .biases = 0, .weight_decay = 0.05};
  const Layer conv{"conv", Convolution{.kernel = 3, .outputs = 8}, decayed};
  const Layer plain{"plain", Convolution{.kernel = 3, .stride = 2, .outputs = 7, .relu = false}};
  const Layer pool{"pool", MaxPool{3, 2}};
  const Layer norm{"norm", LocalResponseNorm{.depth_radius = 4, .alpha = 0.1}};
  const Layer dense{"dense", Dense{.outputs = 6}, decayed};
  const Layer last{"last", Convolution{.kernel = 3, .outputs = 4, .relu = false}};
  const Layer relu_last{"last", Dense{.outputs = 4}};
  const Layer loss{"loss", SoftmaxLoss{}};
  std::vector<Problem> problems;
  for (const std::vector<Layer>& layers : std::initializer_list<std::vector<Layer>>{
           {conv, pool, norm}, {conv, norm, pool, dense}, {pool, plain, norm}, {dense, plain}, {}})
    problems.push_back(draw_problem(small_net({9, 6, 8}, layers), 3));
  // Logits that no dense layer makes, and that end in a relu.
  problems.push_back(draw_problem({"convolution to loss", {1, 1, 5}, 4, {last, loss}}, 3));
  problems.push_back(
      draw_problem({"pool to loss", {2, 2, 5}, 4, {last, {"pool", MaxPool{2, 2}}, loss}}, 3));
  problems.push_back(draw_problem({"relu to loss", {1, 1, 5}, 4, {relu_last, loss}}, 5));
  problems.push_back(draw_problem(reduced_cifar10_net(), 5));
  return problems;
}

TEST_CASE("every layer in every precision, by cuDNN's stand-in and by the direct kernels") {
  const std::vector<Problem> problems = problems_of_all_layers();
  const GpusUnderTest gpus = gpus_under_test();
  if (gpus.counts.empty()) return skip(gpus.why_none);
  for_each_precision(gpus, gpus.counts.front(), [&](BackendUnderTest row, Backend& backend) {
    for (const char* convolution : {"auto", "direct"}) {
      row.options.convolution = convolution;
      for (std::size_t p = 0; p < problems.size(); ++p) {
        CAPTURE(convolution, p);
        check_against_reference(row, backend, problems[p], 2);
      }
    }
  });
}

// Without, the direct kernels take cuDNN's place: all numbers are right, and a step takes many
// times as long.
TEST_CASE("cuDNN has an engine that runs here for every convolution of the CIFAR-10 net") {
  const GpusUnderTest gpus = gpus_under_test();
  if (gpus.counts.empty()) return skip(gpus.why_none);
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16})
    for (const bool deterministic : {false, true}) {
      const auto backend = gpus.make(gpus.counts.front(), 0);
      if (precision == Precision::bf16 && !has_bf16(*backend)) continue;
      gpus.take_warnings();
      CompileOptions options;
      options.batch_size = gpus.plain_loops ? 1 : 128;
      options.precision = precision;
      options.deterministic = deterministic;
      options.device_of_tower = {0};
      backend->compile(cifar10_net(), options);
      CAPTURE(to_string(precision), deterministic);
      CHECK(gpus.take_warnings() == std::vector<std::string>());
    }
}

TEST_CASE("in every precision towers of a part each do what one tower does with the whole") {
  const Problem problem = draw_problem(reduced_cifar10_net(), 4);
  const bool plain_loops = gpus_under_test().plain_loops;
  for_each_placement([&](BackendUnderTest row, Backend& backend) {
    for (const char* convolution : {"auto", "direct"}) {
      CAPTURE(convolution);
      row.options.convolution = convolution;
      const HostBatches whole(backend, problem, 1), parts(backend, problem, 4);
      const std::unique_ptr<Towers> one = compile(row, backend, problem, 4);
      const std::unique_ptr<Towers> many = compile(row, backend, problem, 1, 4);
      // In 16 bits cuDNN and its stand-in round each tower's gradient by itself, and libraries sum
      // otherwise at another batch size: from the second step on the variables differ, with
      // decisions that flip. The direct kernels do neither.
      const bool exact = row.options.precision == Precision::fp64 ||
                         (plain_loops && row.options.convolution == "direct");
      for (int s = 0; s < (exact ? 2 : 1); ++s) {
        run_step(*one, whole.get());
        run_step(*many, parts.get());
      }
      CHECK_FALSE(many->report().non_finite.has_value());
      check_flat(problem, "gradient", gradients_of(*many, problem),
                 doubles(gradients_of(*one, problem)), row.tolerance);
      check_flat(problem, "value", variables_of(*many, problem),
                 doubles(variables_of(*one, problem)), row.tolerance);
      check_flat(problem, "average", averages_of(*many, problem),
                 doubles(averages_of(*one, problem)), row.tolerance);
    }
  });
}

TEST_CASE("in every precision gradients are told before the update too, without the loss scale") {
  const Problem problem = draw_problem(reduced_cifar10_net(), 4);
  for_each_placement([&](const BackendUnderTest& row, Backend& backend) {
    const HostBatches parts(backend, problem, 4);
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 1, 4);
    towers->compute_gradients(parts.get(), false);
    towers->average_gradients();
    const std::vector<float> before = gradients_of(*towers, problem);
    towers->apply_gradients(0.1f, 0.9f);
    check_flat(problem, "gradient", gradients_of(*towers, problem), doubles(before), 2e-7);
  });
}

TEST_CASE("in every precision --deterministic gives the same bytes on any number of devices") {
  const Problem problem = draw_problem(reduced_cifar10_net(), 4);
  std::map<std::string, std::vector<float>> first;
  for_each_placement([&](BackendUnderTest row, Backend& backend) {
    row.options.deterministic = true;
    const HostBatches parts(backend, problem, 4);
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 1, 4);
    for (int s = 0; s < 2; ++s) run_step(*towers, parts.get());
    const std::vector<float> variables = variables_of(*towers, problem);
    CHECK(variables == first.emplace(row.name, variables).first->second);
    CHECK(variables != problem.variables);
  });
}

TEST_CASE("in every precision inference gives the logits of training") {
  const Problem problem = draw_problem(reduced_cifar10_net(), 3);
  for_each_placement([&](const BackendUnderTest& row, Backend& backend) {
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 3);
    const HostBatch host(backend, problem);
    towers->compute_gradients({&host.get(), 1}, true);
    const std::unique_ptr<Inference> inference =
        backend.compile_inference(problem.net, 3, row.options.precision, 0);
    inference->write_variables(problem.variables);
    std::vector<float> logits(30, NAN);
    inference->logits(host.get(), logits);
    // Libraries may sum in another order where a backward pass follows.
    const double tolerance = gpus_under_test().plain_loops ? 0 : row.tolerance;
    CHECK(reference::relative_error(logits, towers->activations("softmax_linear")) <= tolerance);
  });
}

TEST_CASE("in every precision what is not finite is named") {
  const Problem problem = draw_problem(reduced_cifar10_net(), 4);
  for_each_placement([&](const BackendUnderTest& row, Backend& backend) {
    for (const char* name : {"conv1/weights", "local4/biases"}) {
      const std::unique_ptr<Towers> towers = compile(row, backend, problem, 1, 4);
      std::vector<float> poisoned = problem.variables;
      poisoned[problem.layout.find(name).offset] = NAN;
      towers->write_variables(poisoned, problem.averages);
      run_step(*towers, HostBatches(backend, problem, 4).get());
      REQUIRE(towers->report().non_finite.has_value());
      CHECK(towers->report().non_finite->what == name);
      CHECK(towers->report().non_finite->tower == -1);
    }
    // A NaN in an image of tower 2, after a good step.
    const std::unique_ptr<Towers> towers = compile(row, backend, problem, 1, 4);
    run_step(*towers, HostBatches(backend, problem, 4).get());
    Problem bad = problem;
    bad.images[2 * problem.net.input.size() + 99] = NAN;
    const std::vector<float> good = variables_of(*towers, problem);
    run_step(*towers, HostBatches(backend, bad, 4).get());
    // A library's relu may make NaN zero. The gradients of the weights are NaN all the same, which
    // in float16 looks like an overflow: the step is left out.
    if (!gpus_under_test().plain_loops && row.options.precision == Precision::fp16 &&
        !towers->report().non_finite) {
      CHECK(variables_of(*towers, problem) == good);
      return;
    }
    REQUIRE(towers->report().non_finite.has_value());
    CHECK(towers->report().non_finite->tower == 2);
    CHECK(towers->report().non_finite->good_steps == 1);
  });
}

// Logits so far from right, and weights so large, that the gradient of the layer below is about
// eight times the scale: in float16 the first two or three scales are too large for it.
Problem overflowing_problem() {
  Problem problem = draw_problem(small_net({1, 1, 6}, {{"hidden", Dense{.outputs = 12}}}), 4);
  for (float& weight :
       view(std::span<float>(problem.variables), problem.layout.find("logits/weights")))
    weight *= 16;
  return problem;
}

TEST_CASE(
    "an overflow in float16 leaves steps out until the scale fits, on any number of devices") {
  const Problem problem = overflowing_problem();
  const GpusUnderTest under_test = gpus_under_test();
  if (under_test.counts.empty()) return skip(under_test.why_none);
  std::vector<float> first;
  for (const int devices : under_test.counts)
    for (const bool deterministic : {false, true}) {
      CAPTURE(devices, deterministic);
      const std::shared_ptr<Backend> gpus = under_test.make(devices, 9);
      BackendUnderTest row = row_of(Precision::fp16);
      row.options.deterministic = deterministic;
      const std::unique_ptr<Towers> towers = compile(row, *gpus, problem, 1, 4);
      const HostBatches parts(*gpus, problem, 4);
      run_step(*towers, parts.get());
      const float loss = towers->report().towers.at(0).total;
      CHECK(std::isfinite(loss));
      CHECK(variables_of(*towers, problem) == problem.variables);
      CHECK(averages_of(*towers, problem) == problem.averages);
      const std::vector<float> gradients = gradients_of(*towers, problem);
      CHECK_FALSE(std::ranges::all_of(gradients, [](float g) { return std::isfinite(g); }));
      run_step(*towers, parts.get());
      CHECK(towers->report().towers.at(0).total == loss);  // of the same variables
      for (int s = 0; s < 8; ++s) run_step(*towers, parts.get());
      CHECK_FALSE(towers->report().non_finite.has_value());
      const std::vector<float> variables = variables_of(*towers, problem);
      CHECK(variables != problem.variables);
      if (first.empty()) first = variables;
      check_flat(problem, "value", variables, doubles(first), deterministic ? 1e-6 : row.tolerance);
    }
}

TEST_CASE("a gradient that no scale makes finite ends a float16 run, and is named") {
  const GpusUnderTest under_test = gpus_under_test();
  if (under_test.counts.empty()) return skip(under_test.why_none);
  // Relu stops the infinite input, whose weights' gradient is not finite all the same.
  Problem problem = draw_problem(small_net({1, 1, 6}, {{"hidden", Dense{.outputs = 12}}}), 1);
  for (float& weight :
       view(std::span<float>(problem.variables), problem.layout.find("hidden/weights")))
    weight = std::fabs(weight);
  problem.images[0] = -std::numeric_limits<float>::infinity();
  const std::shared_ptr<Backend> gpus = under_test.make(under_test.counts.front(), 0);
  const std::unique_ptr<Towers> towers = compile(row_of(Precision::fp16), *gpus, problem, 1);
  const HostBatch host(*gpus, problem);
  for (int s = 0; s < 15; ++s) run_step(*towers, {&host.get(), 1});
  CHECK_FALSE(towers->report().non_finite.has_value());
  CHECK(variables_of(*towers, problem) == problem.variables);
  run_step(*towers, {&host.get(), 1});
  REQUIRE(towers->report().non_finite.has_value());
  CHECK(towers->report().non_finite->what == "gradient of hidden/weights");
  CHECK(towers->report().non_finite->tower == 0);
  CHECK(towers->report().non_finite->good_steps == 15);
}

}  // namespace
}  // namespace towers::test
