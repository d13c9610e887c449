#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/distortion.h"

namespace towers {
namespace {

bool equal(const Distortion& a, const Distortion& b) {
  return a.top == b.top && a.left == b.left && a.flip == b.flip && a.contrast == b.contrast;
}

}  // namespace

// From an implementation in Python's whole numbers and doubles.
TEST_CASE("The draw for a position is the same everywhere") {
  CHECK(equal(draw_distortion(7, 0), {5, 4, false, 1.7962692975997925f}));
  CHECK(equal(draw_distortion(7, 1), {2, 5, false, 1.2894526720046997f}));
  CHECK(equal(draw_distortion(7, 49999), {2, 6, false, 0.6794211268424988f}));
  CHECK(equal(draw_distortion(7, 8589934597), {7, 4, false, 0.2583877444267273f}));
  CHECK(equal(draw_distortion(9223372036854775809u, 0), {4, 8, true, 1.6289116144180298f}));
}

TEST_CASE("Offsets, flips and contrasts are uniform and independent") {
  constexpr int kDraws = 200000, kContrasts = 16;
  // Cells of equal probability: 81 offsets, 2 flips, 16 contrasts.
  std::vector<int> cells(81 * 2 * kContrasts);
  double contrast_sum = 0;
  for (std::uint64_t position = 0; position < kDraws; ++position) {
    const Distortion d = draw_distortion(2026, position);
    REQUIRE((d.top >= 0 && d.top < kCropOffsets && d.left >= 0 && d.left < kCropOffsets));
    REQUIRE((double{d.contrast} >= 0.2 && double{d.contrast} < 1.8));
    const int contrast = static_cast<int>((double{d.contrast} - 0.2) / 1.6 * kContrasts);
    ++cells[static_cast<std::size_t>(((d.top * 9 + d.left) * 2 + d.flip) * kContrasts + contrast)];
    contrast_sum += double{d.contrast};
  }
  const double expected = static_cast<double>(kDraws) / static_cast<double>(cells.size());
  double chi_square = 0;
  for (const int count : cells) chi_square += (count - expected) * (count - expected) / expected;
  // 2591 degrees of freedom: mean 2591, standard deviation 72.
  CHECK(chi_square > 2591 - 4 * 72);
  CHECK(chi_square < 2591 + 4 * 72);
  CHECK(contrast_sum / kDraws == Approx(1.0).margin(4 * 1.6 / std::sqrt(12.0 * kDraws)));
}

}  // namespace towers
