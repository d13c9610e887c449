#pragma once
// Biases and relu for one item of work: N neighbouring channels of a pixel, or N values.

#include <cstddef>

#include "core/host_device.h"
#include "cuda/lanes.h"

namespace towers::cuda {

TOWERS_HD inline float relu_of(float x) {
  return x <= 0 ? 0 : x;  // NaN stays
}

template <int N>
TOWERS_HD inline void add_biases_item(int c, const float* biases, bool relu, float* values) {
  const Lanes<float, N> bias = load<N>(biases + c);
  Lanes<float, N> sum = load<N>(values);
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i) {
    sum.at[i] += bias.at[i];
    if (relu) sum.at[i] = relu_of(sum.at[i]);
  }
  store(values, sum);
}

template <int N>
TOWERS_HD inline void relu_backward_item(const float* output, float* d) {
  const Lanes<float, N> value = load<N>(output);
  Lanes<float, N> gradient = load<N>(d);
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i)
    if (value.at[i] <= 0) gradient.at[i] = 0;
  store(d, gradient);
}

}  // namespace towers::cuda
