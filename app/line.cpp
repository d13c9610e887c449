#include "app/line.h"

#include <cmath>
#include <cstdio>
#include <numbers>

#include "core/philox.h"

namespace towers::app {
namespace {

// Two independent draws from N(0, 1): Box and Muller's transform.
std::array<float, 2> normals(std::uint32_t first, std::uint32_t second) {
  const double u = 1.0 - static_cast<double>(uniform(first));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(uniform(second));
  const double radius = std::sqrt(-2.0 * std::log(u));
  return {static_cast<float>(radius * std::cos(angle)),
          static_cast<float>(radius * std::sin(angle))};
}

}  // namespace

Line initial_line(std::uint64_t seed) {
  const PhiloxBlock random = philox(seed, Stream::initial_values, 0);
  return normals(random.word[0], random.word[1]);
}

LineExample line_example(std::uint64_t seed, int worker, std::uint64_t index) {
  const PhiloxBlock random = philox(seed, Stream::line, index, static_cast<std::uint32_t>(worker));
  const auto [x, noise] = normals(random.word[0], random.word[1]);
  return {x, 2.0f * x + 10.0f + 0.33f * noise};
}

LineGradient line_gradient(const Line& line, const LineExample& example) {
  const float error = line[0] * example.x + line[1] - example.y;
  return {error * error, {2.0f * error * example.x, 2.0f * error}};
}

std::string line_text(std::int64_t step, const Line& line, float loss) {
  char text[256];
  std::snprintf(text, sizeof text, "step: %lld, weight: %f, biase: %f, loss: %f",
                static_cast<long long>(step), static_cast<double>(line[0]),
                static_cast<double>(line[1]), static_cast<double>(loss));
  return text;
}

}  // namespace towers::app
