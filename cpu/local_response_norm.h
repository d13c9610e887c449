#pragma once
// Local response normalization across channels: y = x * s^-beta with
// s = bias + alpha * (sum of x^2 over the 2 * radius + 1 channels around).

#include <cstddef>

#include "core/net.h"
#include "cpu/simd.h"
#include "cpu/view.h"

namespace towers::cpu {

struct NormShape {
  Extent extent;
  int radius = 0;
  float bias = 0, alpha = 0, beta = 0;

  // Values of scratch memory, zeroed once, that a call needs.
  std::size_t scratch() const {
    return 2 * static_cast<std::size_t>(extent.width) *
               static_cast<std::size_t>(extent.channels + 2 * radius) +
           64;
  }
};

// One image.
struct NormKernels {
  SimdTarget target = 0;  // that these were compiled for
  void (*forward)(const NormShape&, ConstView in, View out, float* scratch) = nullptr;
  // d_in = d_out * s^-beta - 2 * alpha * beta * x * sum around of (d_out * x * s^-(beta + 1)), and
  // zero where `relu_input` says that the input is the output of a relu and it is zero.
  void (*backward)(const NormShape&, ConstView in, ConstView d_out, View d_in, bool relu_input,
                   float* scratch) = nullptr;
};

NormKernels norm_kernels(SimdTarget target);

}  // namespace towers::cpu
