#pragma once
// CUDA's bfloat16 for plain compilers: storage and conversions.

#include <cmath>
#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
  std::uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

// To nearest, ties to even, as CUDA's; NaN becomes its one NaN.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  if (std::isnan(value)) return {0x7fff};
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7fffu + (bits >> 16 & 1);
  return {static_cast<std::uint16_t>(bits >> 16)};
}
