#include "core/variables.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <stdexcept>

#include "core/models/cifar10.h"

namespace towers {
namespace {

std::vector<float> initial_values(const VariableLayout& layout, std::uint64_t seed) {
  std::vector<float> flat(layout.size(), -1.0f);
  initialize_variables(layout, seed, flat);
  return flat;
}

}  // namespace

TEST_CASE("The tutorial's net has its variables in TensorFlow's order and layout") {
  const VariableLayout layout(cifar10_net());
  struct Expected {
    const char* name;
    std::vector<std::int64_t> shape;
    double stddev, constant, weight_decay;
    const char* layer;
  };
  const Expected expected[] = {
      {"conv1/weights", {5, 5, 3, 64}, 0.05, 0, 0, "conv1"},
      {"conv1/biases", {64}, 0, 0, 0, "conv1"},
      {"conv2/weights", {5, 5, 64, 64}, 0.05, 0, 0, "conv2"},
      {"conv2/biases", {64}, 0, 0.1, 0, "conv2"},
      {"local3/weights", {2304, 384}, 0.04, 0, 0.004, "local3"},
      {"local3/biases", {384}, 0, 0.1, 0, "local3"},
      {"local4/weights", {384, 192}, 0.04, 0, 0.004, "local4"},
      {"local4/biases", {192}, 0, 0.1, 0, "local4"},
      {"softmax_linear/weights", {192, 10}, 1 / 192.0, 0, 0, "softmax_linear"},
      {"softmax_linear/biases", {10}, 0, 0, 0, "softmax_linear"},
  };
  REQUIRE(layout.variables().size() == std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const Variable& v = layout.variables()[i];
    const Expected& e = expected[i];
    INFO(e.name);
    CHECK(v.name == e.name);
    CHECK(v.shape == e.shape);
    CHECK(v.stddev == e.stddev);
    CHECK(v.constant == e.constant);
    CHECK(v.weight_decay == e.weight_decay);
    CHECK(cifar10_net().layers[v.layer].name == e.layer);
    CHECK(&layout.find(e.name) == &v);
  }
  CHECK(layout.trainable_values() == 1068298);
  CHECK_THROWS_AS(layout.find("conv3/weights"), std::out_of_range);
}

TEST_CASE("Views start at whole cache lines, follow one another and do not overlap") {
  const VariableLayout layout(cifar10_net());
  std::size_t next = 0, values = 0;
  for (const Variable& v : layout.variables()) {
    INFO(v.name);
    CHECK(v.offset % 16 == 0);
    CHECK(v.offset >= next);
    CHECK(v.offset - next < 16);
    next = v.offset + v.size;
    values += v.size;
  }
  CHECK(values == layout.trainable_values());
  CHECK(layout.size() % 16 == 0);
  CHECK(layout.size() - next < 16);
}

TEST_CASE("The weight decay asked for reaches local3 and local4 alone") {
  const VariableLayout layout(cifar10_net(0.25));
  for (const Variable& v : layout.variables())
    CHECK(v.weight_decay ==
          (v.name == "local3/weights" || v.name == "local4/weights" ? 0.25 : 0.0));
}

TEST_CASE("Weights start from a normal distribution that ends at two standard deviations") {
  const VariableLayout layout(cifar10_net());
  const std::vector<float> flat = initial_values(layout, 42);
  for (const Variable& v : layout.variables()) {
    if (v.stddev == 0) continue;
    INFO(v.name);
    const auto weights = view(std::span<const float>(flat), v);
    const double n = static_cast<double>(weights.size());
    double sum = 0, squares = 0, within_one = 0, largest = 0;
    for (const float w : weights) {
      const double z = double{w} / v.stddev;
      sum += z;
      squares += z * z;
      within_one += std::abs(z) < 1 ? 1 : 0;
      largest = std::max(largest, std::abs(z));
    }
    // A normal cut at 2 has the standard deviation 0.8796, the fourth moment 1.363 (hence 0.767),
    // and 0.7153 of it lies within 1. Five standard errors.
    CHECK(std::abs(sum / n) < 5 * 0.8796 / std::sqrt(n));
    CHECK(std::abs(squares / n - 0.7737) < 5 * 0.874 / std::sqrt(n));
    CHECK(std::abs(within_one / n - 0.7153) < 5 * 0.4513 / std::sqrt(n));
    CHECK(largest <= 2 * (1 + 1e-6));
    CHECK(largest > 1.9);
  }
}

TEST_CASE("Biases start at their constants and padding at zero") {
  const VariableLayout layout(cifar10_net());
  std::vector<float> flat = initial_values(layout, 42);
  for (const Variable& v : layout.variables()) {
    INFO(v.name);
    const auto values = view(std::span<float>(flat), v);
    if (v.stddev == 0)
      CHECK(std::all_of(values.begin(), values.end(),
                        [&](float b) { return b == static_cast<float>(v.constant); }));
    std::fill(values.begin(), values.end(), 0.0f);
  }
  CHECK(std::all_of(flat.begin(), flat.end(), [](float x) { return x == 0; }));
}

TEST_CASE("Initial values follow from the seed, and no two variables share them") {
  const VariableLayout layout(cifar10_net());
  const std::vector<float> flat = initial_values(layout, 42);
  CHECK(initial_values(layout, 42) == flat);
  CHECK(initial_values(layout, 43) != flat);
  std::set<float> first;
  std::size_t drawn = 0;
  for (const Variable& v : layout.variables()) {
    if (v.stddev == 0) continue;
    for (std::size_t i = 0; i < 100; ++i, ++drawn)
      first.insert(flat[v.offset + i] / static_cast<float>(v.stddev));
  }
  CHECK(first.size() + 2 >= drawn);  // float values may meet by chance, streams may not
}

}  // namespace towers
