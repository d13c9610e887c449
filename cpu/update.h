#pragma once
// Passes over flat ranges of variables, gradients and moving averages.

#include <cstddef>

#include "cpu/simd.h"

namespace towers::cpu {

// What an update met that is NaN or infinite.
struct NonFiniteSeen {
  bool gradient = false, old_value = false, new_value = false, average = false;

  bool operator==(const NonFiniteSeen&) const = default;
};

struct UpdateKernels {
  SimdTarget target = 0;  // that these were compiled for
  // value -= learning_rate * gradient; average -= decay_rest * (average - value), `size` values.
  // The test is of the bits: relu and max pooling can hide a NaN from the loss, nothing hides it
  // here.
  NonFiniteSeen (*update)(std::size_t size, float learning_rate, float decay_rest,
                          const float* gradient, float* value, float* average) = nullptr;
  // out[i] = (parts[i] + parts[stride + i] + ...) of `count` parts, in that order, then
  // + scale * scaled[i] where scaled is not null.
  void (*sum_parts)(std::size_t size, const float* parts, std::size_t stride, int count,
                    const float* scaled, float scale, float* out) = nullptr;
  // Sum of squares, in single precision over short runs and in double over those.
  double (*sum_of_squares)(std::size_t size, const float* values) = nullptr;
  // d_x = 0 where x, the output of a relu, is not positive.
  void (*relu_backward)(std::size_t size, const float* x, float* d_x) = nullptr;
};

UpdateKernels update_kernels(SimdTarget target);

bool all_finite(std::size_t size, const float* values);

}  // namespace towers::cpu
