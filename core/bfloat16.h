#pragma once
// bfloat16: the upper half of a float32, as its bits.

#include <bit>
#include <cstdint>

namespace towers {

// Rounds to the nearest, ties to even; NaN stays NaN.
inline std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

inline float from_bfloat16(std::uint16_t value) {
  return std::bit_cast<float>(std::uint32_t{value} << 16);
}

}  // namespace towers
