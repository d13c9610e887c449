#pragma once
// The linear regression: y = weight * x + biase, fitted to examples of y = 2x + 10 with noise.

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace towers::app {

// Order and names of TensorFlow's variables; each has shape [1].
inline constexpr std::array<const char*, 2> kLineVariables = {"weight", "biase"};
using Line = std::array<float, kLineVariables.size()>;

// Both drawn from N(0, 1).
Line initial_line(std::uint64_t seed);

struct LineExample {
  float x = 0;  // N(0, 1)
  float y = 0;  // 2x + 10 + 0.33 N(0, 1)
};
// A pure function of its arguments; each worker draws others.
LineExample line_example(std::uint64_t seed, int worker, std::uint64_t index);

// loss = (y - prediction)^2 and its gradient.
struct LineGradient {
  float loss = 0;
  Line gradient{};
};
LineGradient line_gradient(const Line& line, const LineExample& example);

// "step: 1000, weight: 0.123456, biase: 0.123456, loss: 0.123456"
std::string line_text(std::int64_t step, const Line& line, float loss);

}  // namespace towers::app
