// Pictures of any size as small square ones.
#include "core/resample.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

using namespace towers;
using Bytes = std::vector<std::uint8_t>;

namespace {

Bytes resampled(const Bytes& rgb, int width, int height, int side) {
  Bytes planes(static_cast<std::size_t>(3 * side * side));
  resample_central_square(rgb, width, height, side, planes);
  return planes;
}

// A gray picture.
Bytes gray(const Bytes& values) {
  Bytes rgb;
  for (std::uint8_t value : values) rgb.insert(rgb.end(), 3, value);
  return rgb;
}

Bytes red_plane(const Bytes& planes) {
  return {planes.begin(), planes.begin() + static_cast<std::ptrdiff_t>(planes.size() / 3)};
}

}  // namespace

TEST_CASE("a picture of the target's size is taken apart into planes, unchanged") {
  const Bytes rgb = {1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252};
  CHECK(resampled(rgb, 2, 2, 2) == Bytes{1, 4, 7, 250, 2, 5, 8, 251, 3, 6, 9, 252});
}

TEST_CASE("the central square is taken; an odd pixel more is left out at the right or the bottom") {
  CHECK(red_plane(resampled(gray({9, 1, 2, 9, 9, 3, 4, 9}), 4, 2, 2)) == Bytes{1, 2, 3, 4});
  CHECK(red_plane(resampled(gray({1, 2, 9, 3, 4, 9}), 3, 2, 2)) == Bytes{1, 2, 3, 4});
  CHECK(red_plane(resampled(gray({1, 2, 3, 4, 9, 9}), 2, 3, 2)) == Bytes{1, 2, 3, 4});
}

TEST_CASE("smaller: a triangle two target pixels wide") {
  // Four columns to two: the weights of the first are 3/8, 3/8, 1/8 of (3, 3, 1), and so mirrored.
  Bytes values;
  for (int row = 0; row < 4; ++row) values.insert(values.end(), {0, 70, 140, 210});
  const std::uint8_t first = (0 * 3 + 70 * 3 + 140 * 1) / 7, second = (70 + 140 * 3 + 210 * 3) / 7;
  CHECK(red_plane(resampled(gray(values), 4, 4, 2)) == Bytes{first, second, first, second});
}

TEST_CASE("larger: linear between the pixels' centers") {
  const Bytes values = {0, 100, 0, 100};
  CHECK(red_plane(resampled(gray(values), 2, 2, 4)) ==
        Bytes{0, 25, 75, 100, 0, 25, 75, 100, 0, 25, 75, 100, 0, 25, 75, 100});
}

TEST_CASE("an even picture stays even at any size") {
  for (const int side : {1, 7, 31, 32, 33, 100}) {
    const Bytes rgb(static_cast<std::size_t>(3 * side * (side + 3)), 201);
    const Bytes planes = resampled(rgb, side + 3, side, 32);
    CHECK(std::all_of(planes.begin(), planes.end(), [](int value) { return value == 201; }));
  }
}

TEST_CASE("sizes that do not fit together are refused") {
  CHECK_THROWS_AS(resampled(Bytes(12), 2, 1, 2), std::invalid_argument);
  CHECK_THROWS_AS(resampled({}, 0, 0, 2), std::invalid_argument);
  Bytes planes(3);
  CHECK_THROWS_AS(resample_central_square(Bytes(12), 2, 2, 2, planes), std::invalid_argument);
}
