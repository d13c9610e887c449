#pragma once
// Checks a gradient against central differences.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <functional>
#include <random>
#include <vector>

namespace towers::reference {

// Values in [-1, 1), the same in every run.
inline std::vector<double> random_values(std::size_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<double> values(size);
  for (double& v : values) v = static_cast<double>(generator()) / 2147483648.0 - 1;
  return values;
}

// gradient[i] must be d objective / d values[i]; tests up to `samples` of them, evenly spread. The
// step leaves an error near 1e-10 where the objective is smooth and of order one; callers keep
// kinks away.
inline void check_gradient(std::vector<double>& values, const std::vector<double>& gradient,
                           const std::function<double()>& objective, std::size_t samples = 60) {
  constexpr double kStep = 1e-5, kTolerance = 1e-7;
  REQUIRE(values.size() == gradient.size());
  const std::size_t stride = values.size() / samples + 1;
  for (std::size_t i = 0; i < values.size(); i += stride) {
    const double value = values[i];
    values[i] = value + kStep;
    const double above = objective();
    values[i] = value - kStep;
    const double below = objective();
    values[i] = value;
    const double expected = (above - below) / (2 * kStep);
    INFO("value " << i << ": gradient " << gradient[i] << ", difference " << expected);
    REQUIRE(std::abs(gradient[i] - expected) <= kTolerance * std::max(1.0, std::abs(expected)));
  }
}

}  // namespace towers::reference
