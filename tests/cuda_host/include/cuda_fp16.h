#pragma once
// CUDA's half precision for plain compilers: storage and conversions.

#include <cmath>
#include <cstdint>
#include <cstring>

struct __half {
  std::uint16_t bits;
};

inline float __half2float(__half half) {
  const std::uint32_t magnitude = half.bits & 0x7fff, sign = (half.bits & 0x8000u) << 16;
  // A half's exponent counts from 15, a float's from 127.
  std::uint32_t bits = magnitude << 13;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  value *= 0x1p112f;
  if (magnitude > 0x7c00) value = std::nanf("");
  if (magnitude == 0x7c00) value = INFINITY;
  return sign != 0 ? -value : value;
}

// To nearest, ties to even, as CUDA's; NaN becomes its one NaN.
inline __half __float2half_rn(float value) {
  if (std::isnan(value)) return {0x7fff};
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x1p-14f)  // multiples of 2^-24
    return {static_cast<std::uint16_t>(sign | std::lrintf(magnitude * 0x1p24f))};
  std::uint32_t bits;
  std::memcpy(&bits, &magnitude, sizeof bits);
  bits += 0xfffu + (bits >> 13 & 1);  // a mantissa that overflows carries into the exponent
  return {static_cast<std::uint16_t>(sign | (bits - (112u << 23)) >> 13)};
}
