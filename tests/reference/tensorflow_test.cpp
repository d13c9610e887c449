// The reference itself against TensorFlow's values. Those are float32, hence the tolerance.

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/schedule.h"
#include "tests/reference/compare.h"
#include "tests/reference/golden.h"
#include "tests/reference/layers.h"
#include "tests/reference/net.h"
#include "tests/reference/safetensors.h"
#include "tests/support.h"

namespace towers::reference {
namespace {

constexpr double kTolerance = 1e-5;

// One layer of layers.safetensors.
struct Case {
  Case(const Safetensors& file, const std::string& name)
      : shape(file.shape(name + "/x")),
        x(doubles(file.floats(name + "/x"))),
        y(file.floats(name + "/y")),
        dy(doubles(file.floats(name + "/dy"))),
        dx(file.floats(name + "/dx")) {}
  Extent extent() const {
    return {static_cast<int>(shape[1]), static_cast<int>(shape[2]), static_cast<int>(shape[3])};
  }
  std::vector<std::size_t> shape;
  std::vector<double> x;
  std::vector<float> y;
  std::vector<double> dy;
  std::vector<float> dx;
};

// Names like "max_pool/ties": those that start with `kind` and have an x.
std::vector<std::string> cases(const Safetensors& file, const std::string& kind) {
  std::vector<std::string> names;
  for (const std::string& name : file.names())
    if (name.starts_with(kind) && name.ends_with("/x"))
      names.push_back(name.substr(0, name.size() - 2));
  return names;
}

TEST_CASE("convolutions agree with TensorFlow's") {
  const Safetensors file(golden_dir() / "layers.safetensors");
  const std::vector<std::string> names = cases(file, "convolution/");
  REQUIRE(names.size() == 6);
  for (const std::string& name : names) {
    INFO(name);
    const Case golden(file, name);
    const std::vector<std::int32_t> p = file.integers(name + "/parameters");
    const std::vector<double> w = doubles(file.floats(name + "/w"));
    const std::vector<double> b = doubles(file.floats(name + "/b"));
    const Convolution c{.kernel = p[0], .stride = p[1], .outputs = static_cast<int>(b.size())};
    const Extent in = golden.extent();
    const std::size_t outputs = output_extent(Layer{"", c}, in).size();
    std::vector<double> y(golden.y.size()), dx(golden.x.size()), dw(w.size()), db(b.size());
    for (std::size_t e = 0; e < golden.shape[0]; ++e) {
      const double* x = golden.x.data() + e * in.size();
      convolution_forward(c, in, x, w.data(), b.data(), y.data() + e * outputs);
      convolution_backward(c, in, x, w.data(), golden.dy.data() + e * outputs,
                           dx.data() + e * in.size(), dw.data(), db.data());
    }
    CHECK(relative_error(y, golden.y) < kTolerance);
    CHECK(relative_error(dx, golden.dx) < kTolerance);
    CHECK(relative_error(dw, file.floats(name + "/dw")) < kTolerance);
    CHECK(relative_error(db, file.floats(name + "/db")) < kTolerance);
  }
}

TEST_CASE("max pools agree with TensorFlow's, ties too") {
  const Safetensors file(golden_dir() / "layers.safetensors");
  const std::vector<std::string> names = cases(file, "max_pool/");
  REQUIRE(names.size() == 6);
  for (const std::string& name : names) {
    INFO(name);
    const Case golden(file, name);
    const std::vector<std::int32_t> p = file.integers(name + "/parameters");
    const MaxPool pool{p[0], p[1]};
    const Extent in = golden.extent();
    const std::size_t outputs = output_extent(Layer{"", pool}, in).size();
    std::vector<std::int32_t> winner(outputs);
    std::vector<double> y(golden.y.size()), dx(golden.x.size());
    for (std::size_t e = 0; e < golden.shape[0]; ++e) {
      const double* x = golden.x.data() + e * in.size();
      max_pool_winners(pool, in, x, winner.data());
      gather(outputs, winner.data(), x, y.data() + e * outputs);
      scatter_add(outputs, winner.data(), golden.dy.data() + e * outputs, in.size(),
                  dx.data() + e * in.size());
    }
    CHECK(relative_error(y, golden.y) == 0);
    CHECK(relative_error(dx, golden.dx) < kTolerance);
  }
}

TEST_CASE("local response norms agree with TensorFlow's") {
  const Safetensors file(golden_dir() / "layers.safetensors");
  const std::vector<std::string> names = cases(file, "local_response_norm/");
  REQUIRE(names.size() == 4);
  for (const std::string& name : names) {
    INFO(name);
    const Case golden(file, name);
    const std::vector<float> p = file.floats(name + "/parameters");
    const LocalResponseNorm norm{static_cast<int>(p[0]), p[1], p[2], p[3]};
    const Extent in = golden.extent();
    std::vector<double> y(golden.y.size()), dx(golden.x.size());
    for (std::size_t at = 0; at < y.size(); at += in.size()) {
      local_response_norm_forward(norm, in, golden.x.data() + at, y.data() + at);
      local_response_norm_backward(norm, in, golden.x.data() + at, golden.dy.data() + at,
                                   dx.data() + at);
    }
    CHECK(relative_error(y, golden.y) < kTolerance);
    CHECK(relative_error(dx, golden.dx) < kTolerance);
  }
}

Pass check_pass(const GoldenPass& golden) {
  Pass pass = forward_backward(golden.net, doubles(golden.variables),
                               make_batch(golden.images, golden.labels));
  CHECK(relative_error(pass.logits(), golden.logits) < kTolerance);
  CHECK(relative_error(pass.losses.weight_losses, golden.weight_losses) < kTolerance);
  CHECK(pass.losses.cross_entropy == Approx(golden.cross_entropy).epsilon(kTolerance));
  CHECK(pass.losses.total == Approx(golden.total_loss).epsilon(kTolerance));
  const VariableLayout layout(golden.net);
  for (const Variable& v : layout.variables()) {
    INFO(v.name);
    CHECK(relative_error(std::span<const double>(pass.gradients).subspan(v.offset, v.size),
                         view(golden.gradients, v)) < kTolerance);
  }
  return pass;
}

TEST_CASE("the reference agrees with TensorFlow on a small net") {
  const GoldenPass golden = small_net_pass();
  const Pass pass = check_pass(golden);
  for (std::size_t l = 0; l + 1 < golden.net.layers.size(); ++l) {
    INFO(golden.net.layers[l].name);
    CHECK(relative_error(pass.outputs[l], golden.outputs.at(golden.net.layers[l].name)) <
          kTolerance);
  }
}

TEST_CASE("the reference agrees with TensorFlow on a trained net") {
  if (test::shared_dir().empty())
    return test::skip("TensorFlow's checkpoint is not beside the checkout");
  check_pass(checkpoint_pass(test::shared_dir(), "forward_backward_wide"));
}

TEST_CASE("the reference agrees with TensorFlow on 128 images and their activations") {
  if (test::shared_dir().empty())
    return test::skip("TensorFlow's checkpoint is not beside the checkout");
  const GoldenPass golden = checkpoint_pass(test::shared_dir(), "forward_backward");
  const Pass pass = check_pass(golden);
  std::ifstream file(test::shared_dir() / "golden" / "activations.json");
  const nlohmann::json activations = nlohmann::json::parse(file);
  int layers = 0;
  for (const auto& [name, stored] : activations.items()) {
    const std::string layer = name.substr(name.rfind('/') + 1);
    const auto found = std::find_if(golden.net.layers.begin(), golden.net.layers.end(),
                                    [&](const Layer& l) { return l.name == layer; });
    if (found == golden.net.layers.end() || !stored.contains("zero_fraction")) continue;
    INFO(name);
    ++layers;
    const std::vector<double>& y =
        pass.outputs[static_cast<std::size_t>(found - golden.net.layers.begin())];
    double sum = 0, squares = 0, zeros = 0;
    for (double value : y) {
      sum += value;
      squares += value * value;
      zeros += value == 0 ? 1 : 0;
    }
    const double n = static_cast<double>(y.size());
    const double mean = sum / n;
    CHECK(mean == Approx(stored.at("mean").get<double>()).epsilon(kTolerance));
    CHECK(std::sqrt(squares / n - mean * mean) ==
          Approx(stored.at("std").get<double>()).epsilon(kTolerance));
    // Values within rounding of 0 fall on either side.
    CHECK(zeros / n == Approx(stored.at("zero_fraction").get<double>()).margin(1e-5));
    const std::vector<double> first = stored.at("first").get<std::vector<double>>();
    CHECK(relative_error(std::span<const double>(y).first(first.size()), first) < kTolerance);
  }
  CHECK(layers == 8);
}

void check_briefs(const Net& net, std::span<const double> flat,
                  const std::map<std::string, Brief>& golden) {
  const VariableLayout layout(net);
  for (const Variable& v : layout.variables()) {
    INFO(v.name);
    const Brief got = brief(flat.subspan(v.offset, v.size));
    CHECK(got.norm == Approx(golden.at(v.name).norm).epsilon(kTolerance));
    CHECK(relative_error(got.picked, golden.at(v.name).picked) < kTolerance);
  }
}

TEST_CASE("the reference follows TensorFlow's curve over ten steps") {
  const GoldenCurve curve = golden_curve();
  std::vector<double> variables = doubles(curve.variables);
  std::vector<double> averages = variables;
  const Batch batch = make_batch(curve.images, curve.labels);
  for (std::size_t step = 0; step < curve.steps.size(); ++step) {
    INFO("step " << step);
    const Pass pass = forward_backward(curve.net, variables, batch);
    CHECK(pass.losses.cross_entropy == Approx(curve.steps[step].cross_entropy).epsilon(kTolerance));
    CHECK(pass.losses.total == Approx(curve.steps[step].total_loss).epsilon(kTolerance));
    CHECK(relative_error(pass.losses.weight_losses, curve.steps[step].weight_losses) < kTolerance);
    if (step == 0) check_briefs(curve.net, pass.gradients, curve.first_gradients);
    apply_gradients(pass.gradients, curve.learning_rate,
                    moving_average_decay(Schedule{}, static_cast<std::int64_t>(step) + 1),
                    variables, averages);
  }
  check_briefs(curve.net, variables, curve.last_variables);
  check_briefs(curve.net, averages, curve.last_averages);
}

}  // namespace
}  // namespace towers::reference
