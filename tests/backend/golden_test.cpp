// Every backend against TensorFlow's values.

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "core/schedule.h"
#include "tests/backend/problem.h"
#include "tests/reference/compare.h"
#include "tests/reference/golden.h"
#include "tests/support.h"

namespace towers::test {
namespace {

using reference::doubles;

// Where a relu or pool decision flips by rounding alone, and with it a gradient: with 128 images.
double gradients_with_flips(const BackendUnderTest& row) {
  return std::max(1e-2, row.golden_gradient_tolerance);
}

bool has_pass(const std::string& name) {
  return std::filesystem::exists(shared_dir() / "golden" / (name + ".safetensors"));
}

Problem problem_of(const reference::GoldenPass& golden) {
  return {golden.net,       VariableLayout(golden.net),
          golden.variables, golden.variables,
          golden.images,    golden.labels};
}

void check_pass(const BackendUnderTest& row, Backend& backend, const reference::GoldenPass& golden,
                double gradient_tolerance) {
  const Problem problem = problem_of(golden);
  const std::unique_ptr<Towers> towers = compile(row, backend, problem, problem.size());
  const HostBatch host(backend, problem);
  towers->compute_gradients({&host.get(), 1}, true);
  CHECK(reference::relative_error(towers->activations("softmax_linear"), golden.logits) <=
        row.golden_tolerance);
  for (const auto& [layer, output] : golden.outputs)
    if (layer.starts_with("conv") || layer.starts_with("local")) {
      INFO("activations of " << layer);
      CHECK(reference::relative_error(towers->activations(layer), output) <= row.golden_tolerance);
    }
  towers->average_gradients();
  const Losses& losses = towers->report().towers.at(0);
  CHECK(losses.cross_entropy == Approx(golden.cross_entropy).epsilon(row.golden_tolerance));
  CHECK(losses.total == Approx(golden.total_loss).epsilon(row.golden_tolerance));
  CHECK(reference::relative_error(losses.weight_losses, golden.weight_losses) <=
        row.golden_tolerance);
  check_flat(problem, "gradient", gradients_of(*towers, problem), doubles(golden.gradients),
             gradient_tolerance);

  const std::unique_ptr<Inference> inference =
      backend.compile_inference(problem.net, problem.size(), row.options.precision, 0);
  inference->write_variables(problem.variables);
  std::vector<float> logits(golden.logits.size());
  inference->logits(host.get(), logits);
  CHECK(reference::relative_error(logits, golden.logits) <= row.golden_tolerance);
}

TEST_CASE("a small net gives TensorFlow's values") {
  const reference::GoldenPass golden = reference::small_net_pass();
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    check_pass(row, backend, golden, row.golden_gradient_tolerance);
  });
}

TEST_CASE("TensorFlow's checkpoint gives its values on images far from flips") {
  if (!has_pass("forward_backward_wide"))
    return skip("TensorFlow's checkpoint is not beside the checkout");
  const reference::GoldenPass golden =
      reference::checkpoint_pass(shared_dir(), "forward_backward_wide");
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    check_pass(row, backend, golden, row.golden_gradient_tolerance);
  });
}

TEST_CASE("TensorFlow's checkpoint gives its values on 128 images") {
  if (!has_pass("forward_backward"))
    return skip("TensorFlow's checkpoint is not beside the checkout");
  const reference::GoldenPass golden = reference::checkpoint_pass(shared_dir(), "forward_backward");
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    check_pass(row, backend, golden, gradients_with_flips(row));
  });
}

TEST_CASE("on 128 images a trained net's gradients differ from exact ones by flips alone") {
  if (!has_pass("forward_backward"))
    return skip("TensorFlow's checkpoint is not beside the checkout");
  const Problem problem = problem_of(reference::checkpoint_pass(shared_dir(), "forward_backward"));
  for_each_thorough_backend([&](const BackendUnderTest& row, Backend& backend) {
    check_against_reference(row, backend, problem);
  });
}

void check_briefs(const Problem& problem, const std::vector<float>& flat,
                  const std::map<std::string, reference::Brief>& golden, double tolerance) {
  const std::vector<double> values = doubles(flat);
  for (const Variable& v : problem.layout.variables()) {
    INFO(v.name);
    const reference::Brief got =
        reference::brief(std::span<const double>(values).subspan(v.offset, v.size));
    CHECK(got.norm == Approx(golden.at(v.name).norm).epsilon(tolerance));
    CHECK(reference::relative_error(got.picked, golden.at(v.name).picked) <= tolerance);
  }
}

Problem problem_of(const reference::GoldenCurve& curve) {
  return {curve.net,   VariableLayout(curve.net), curve.variables, curve.variables, curve.images,
          curve.labels};
}

TEST_CASE("ten steps follow TensorFlow's curve, with one tower and with two") {
  const reference::GoldenCurve curve = reference::golden_curve();
  const Problem problem = problem_of(curve);
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    const double tolerance = row.flips ? gradients_with_flips(row) : row.golden_gradient_tolerance;
    for (const int count : {1, 2}) {
      INFO(count << " towers");
      const std::unique_ptr<Towers> towers =
          compile(row, backend, problem, problem.size() / count, count);
      const HostBatches batches(backend, problem, count);
      for (std::size_t s = 0; s < curve.steps.size(); ++s) {
        INFO("step " << s);
        towers->compute_gradients(batches.get(), false);
        towers->average_gradients();
        if (s == 0)
          check_briefs(problem, gradients_of(*towers, problem), curve.first_gradients, tolerance);
        towers->apply_gradients(curve.learning_rate,
                                moving_average_decay(Schedule{}, static_cast<std::int64_t>(s) + 1));
        double cross_entropy = 0, total = 0;
        for (const Losses& losses : towers->report().towers) {
          cross_entropy += double{losses.cross_entropy} / count;
          total += double{losses.total} / count;
        }
        // From the second step on the losses have what the gradients were off by.
        const double loss_tolerance = s == 0 ? row.golden_tolerance : row.golden_gradient_tolerance;
        CHECK(cross_entropy == Approx(curve.steps[s].cross_entropy).epsilon(loss_tolerance));
        CHECK(total == Approx(curve.steps[s].total_loss).epsilon(loss_tolerance));
      }
      check_briefs(problem, variables_of(*towers, problem), curve.last_variables, tolerance);
      check_briefs(problem, averages_of(*towers, problem), curve.last_averages, tolerance);
    }
  });
}

TEST_CASE("on the curve's images gradients differ from exact ones by flips alone") {
  const Problem problem = problem_of(reference::golden_curve());
  for_each_backend([&](const BackendUnderTest& row, Backend& backend) {
    check_against_reference(row, backend, problem);
  });
}

}  // namespace
}  // namespace towers::test
