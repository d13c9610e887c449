#pragma once
// Passes over bf16 values.

#include <cstddef>
#include <cstdint>

#include "core/bfloat16.h"
#include "cpu/simd.h"

namespace towers::cpu {

enum class Bf16 : std::uint16_t {};  // its bits

inline float to_float(Bf16 value) {
  return from_bfloat16(static_cast<std::uint16_t>(value));
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
