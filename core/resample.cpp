#include "core/resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace towers {
namespace {

// The source pixels that one target pixel is made of.
struct Tap {
  std::size_t first = 0;
  std::vector<double> weights;  // of `first` and those behind it; their sum is 1
};

std::vector<Tap> triangle_taps(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double radius = std::max(1.0, scale);
  std::vector<Tap> taps(static_cast<std::size_t>(to));
  for (int i = 0; i < to; ++i) {
    const double center = (i + 0.5) * scale;  // in source pixels, whose centers lie at n + 0.5
    const int first = std::max(0, static_cast<int>(std::floor(center - radius)));
    const int last = std::min(from - 1, static_cast<int>(std::ceil(center + radius)));
    Tap& tap = taps[static_cast<std::size_t>(i)];
    tap.first = static_cast<std::size_t>(first);
    double sum = 0;
    for (int x = first; x <= last; ++x) {
      tap.weights.push_back(std::max(0.0, 1 - std::abs(x + 0.5 - center) / radius));
      sum += tap.weights.back();
    }
    for (double& weight : tap.weights) weight /= sum;
  }
  return taps;
}

}  // namespace

void resample_central_square(std::span<const std::uint8_t> rgb, int width, int height, int side,
                             std::span<std::uint8_t> planes) {
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  if (width < 1 || height < 1 || side < 1 || rgb.size() != 3 * size(width) * size(height) ||
      planes.size() != 3 * size(side) * size(side))
    throw std::invalid_argument("a picture and its sizes do not fit together");
  const int square = std::min(width, height);
  const std::size_t left = size((width - square) / 2), top = size((height - square) / 2);
  const std::vector<Tap> taps = triangle_taps(square, side);

  // Rows first: one of the square, made `side` pixels long, channels side by side.
  const std::size_t row = 3 * size(side);
  std::vector<double> narrow(size(square) * row);
  for (std::size_t y = 0; y < size(square); ++y) {
    const std::uint8_t* from = &rgb[3 * ((top + y) * size(width) + left)];
    double* to = &narrow[y * row];
    for (const Tap& tap : taps) {
      for (std::size_t c = 0; c < 3; ++c) {
        double sum = 0;
        for (std::size_t k = 0; k < tap.weights.size(); ++k)
          sum += tap.weights[k] * from[3 * (tap.first + k) + c];
        *to++ = sum;
      }
    }
  }
  for (std::size_t y = 0; y < size(side); ++y) {
    const Tap& tap = taps[y];
    for (std::size_t x = 0; x < row; ++x) {
      double sum = 0;
      for (std::size_t k = 0; k < tap.weights.size(); ++k)
        sum += tap.weights[k] * narrow[(tap.first + k) * row + x];
      planes[((x % 3) * size(side) + y) * size(side) + x / 3] =
          static_cast<std::uint8_t>(std::clamp(std::lround(sum), 0L, 255L));
    }
  }
}

}  // namespace towers
