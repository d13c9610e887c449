#pragma once
// bf16: the upper half of a float. Rounded to nearest, ties to even; NaN stays NaN.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cpu/simd.h"

namespace towers::cpu {

enum class Bf16 : std::uint16_t {};  // its bits

inline Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kInfinity = 0x7f800000, kQuiet = 0x400000;
  // A NaN whose upper half alone would be an infinity's.
  if ((bits & 0x7fffffff) > kInfinity) return Bf16((bits | kQuiet) >> 16);
  return Bf16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

struct Bf16Kernels {
  SimdTarget target = 0;  // that these were compiled for
  void (*convert)(std::size_t size, const float* from, Bf16* to) = nullptr;
  // The rounded value, as a float; `to` may be `from`.
  void (*round)(std::size_t size, const float* from, float* to) = nullptr;
  // d_x = 0 where x, the output of a relu, is not positive.
  void (*relu_backward)(std::size_t size, const Bf16* x, float* d_x) = nullptr;
  // max(0, x); NaN stays NaN.
  void (*relu)(std::size_t size, float* x) = nullptr;
};

Bf16Kernels bf16_kernels(SimdTarget target);

}  // namespace towers::cpu
