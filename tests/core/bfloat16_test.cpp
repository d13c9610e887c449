#include "core/bfloat16.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

using namespace towers;

namespace {

// 8 significant bits, ties to even.
float by_exact_arithmetic(float value) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(value), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

}  // namespace

TEST_CASE("bfloat16 rounds to the nearest, ties to even") {
  const auto rounded = [](float x) { return from_bfloat16(to_bfloat16(x)); };
  const float step = std::ldexp(1.0f, -7);  // between 1 and 2
  for (float exact : {0.0f, 1.0f, -1.0f, 1 + step, std::ldexp(1.0f, -126), -3.5f})
    CHECK(rounded(exact) == exact);
  CHECK(rounded(1 + step * 0.49f) == 1);
  CHECK(rounded(1 + step * 0.51f) == 1 + step);
  CHECK(rounded(1 + step * 0.5f) == 1);             // to even
  CHECK(rounded(1 + step * 1.5f) == 1 + 2 * step);  // to even
  CHECK(rounded(-(1 + step * 1.5f)) == -(1 + 2 * step));
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(rounded(std::numeric_limits<float>::max()) == infinity);
  CHECK(rounded(-infinity) == -infinity);
  // Some have their mantissa in the lower half alone.
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u})
    CHECK(std::isnan(rounded(std::bit_cast<float>(bits))));
  std::mt19937 random(7);
  std::uniform_real_distribution<float> value(-4, 4);
  for (int i = 0; i < 200; ++i) {
    const float x = value(random);
    CHECK(rounded(x) == by_exact_arithmetic(x));
  }
}
