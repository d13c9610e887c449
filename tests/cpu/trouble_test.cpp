// How values that are not finite are named. That all of them are seen is tests/backend's business.

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/cpu/support.h"

namespace towers::cpu::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Run {
  explicit Run(int towers = 1)
      : backend(make_backend({2, 1, "auto"})),
        compiled(compile(*backend, net, towers, 4)),
        batches(net, towers, 4),
        variables(layout.size()),
        averages(layout.size()) {
    compiled->read_variables(variables);
    compiled->read_moving_averages(averages);
  }
  NonFinite trouble() {
    compiled->write_variables(variables, averages);
    step(*compiled, batches.get());
    REQUIRE(compiled->report().non_finite.has_value());
    return *compiled->report().non_finite;
  }

  Net net = small_cifar10_net();
  VariableLayout layout{net};
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Towers> compiled;
  Batches batches;
  std::vector<float> variables, averages;
};

TEST_CASE("a bad variable is named itself, not the gradients that it spoils") {
  const Run whole;
  for (const Variable& v : whole.layout.variables())
    for (const float poison : {kNan, kInfinity}) {
      Run run;
      run.variables[v.offset + v.size / 3] = poison;
      const NonFinite trouble = run.trouble();
      CAPTURE(v.name, poison);
      CHECK(trouble.what == v.name);
      CHECK(trouble.tower == -1);
      CHECK(trouble.good_steps == 0);
    }
}

TEST_CASE("a bad moving average is named") {
  Run run;
  run.averages[run.layout.find("local4/biases").offset] = kNan;
  const NonFinite trouble = run.trouble();
  CHECK(trouble.what == "local4/biases/ExponentialMovingAverage");
  CHECK(trouble.tower == -1);
}

TEST_CASE("a bad image is a bad gradient of its tower, wherever in the image it is") {
  // Corners, edges, the middle; the first and the last image and channel.
  for (const int place : {0, 71, 12 * 72 + 36, 23 * 72, 24 * 72 - 1})
    for (const int image : {0, 3})
      for (const float poison : {kNan, kInfinity, -kInfinity}) {
        Run run(3);
        run.batches.images(1)[static_cast<std::size_t>(image * 1728 + place)] = poison;
        const NonFinite trouble = run.trouble();
        CAPTURE(place, image, poison);
        CHECK(trouble.what == "gradient of conv1/weights");
        CHECK(trouble.tower == 1);
      }
}

TEST_CASE("finite gradients whose sum is not are nobody's own") {
  // Opposite errors of 1e38 in three towers: each fits a float, their sum does not.
  const Net net{"line",
                {1, 1, 1},
                2,
                {{"dense", Dense{.outputs = 2, .relu = false}}, {"loss", SoftmaxLoss{}}}};
  const std::unique_ptr<Backend> backend = make_backend({1, 1, "auto"});
  const std::unique_ptr<Towers> towers = compile(*backend, net, 3, 1);
  const std::vector<float> zeros(VariableLayout(net).size());
  towers->write_variables(zeros, zeros);
  const float image = 3e38f;
  const std::int32_t label = 0;
  const std::vector<Batch> batches(3, Batch{&image, &label, 1});
  step(*towers, batches);
  REQUIRE(towers->diverged());
  CHECK(towers->report().non_finite->what == "gradient of dense/weights");
  CHECK(towers->report().non_finite->tower == -1);
}

TEST_CASE("a bad loss alone is its tower's") {
  // The weights are finite, the sum of their squares is not.
  Run run;
  for (float& x : view(std::span<float>(run.variables), run.layout.find("local3/weights"))) x = 0;
  run.variables[run.layout.find("local3/weights").offset] = 3e38f;
  run.batches.images(0).assign(run.batches.images(0).size(), 0.0f);
  const NonFinite trouble = run.trouble();
  CHECK(trouble.what.empty());
  CHECK(trouble.tower == 0);
}

TEST_CASE("after trouble nothing is written, and the report stays") {
  Run run;
  step(*run.compiled, run.batches.get());
  CHECK_FALSE(run.compiled->diverged());
  const float good = run.batches.images(0)[5];
  run.batches.images(0)[5] = kNan;
  step(*run.compiled, run.batches.get());
  REQUIRE(run.compiled->diverged());
  run.compiled->read_variables(run.variables);
  run.batches.images(0)[5] = good;
  step(*run.compiled, run.batches.get());
  CHECK(run.compiled->report().non_finite->what == "gradient of conv1/weights");
  CHECK(run.compiled->report().non_finite->good_steps == 1);
  std::vector<float> now(run.layout.size());
  run.compiled->read_variables(now);
  // Bytes, as NaN differs from itself.
  CHECK(std::memcmp(now.data(), run.variables.data(), now.size() * sizeof(float)) == 0);
}

}  // namespace
}  // namespace towers::cpu::test
