#pragma once
// Biases and relu for one item of work: N neighbouring channels of a pixel, or N values.

#include <cstddef>

#include "core/host_device.h"
#include "cuda/lanes.h"

namespace towers::cuda {

template <class W>
TOWERS_HD inline W relu_of(W x) {
  return x <= 0 ? 0 : x;  // NaN stays
}

template <int N, class T>
TOWERS_HD inline void add_biases_item(int c, const T* biases, bool relu, T* values) {
  const Lanes<Wide<T>, N> bias = load<N>(biases + c);
  Lanes<Wide<T>, N> sum = load<N>(values);
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i) {
    sum.at[i] += bias.at[i];
    if (relu) sum.at[i] = relu_of(sum.at[i]);
  }
  store(values, sum);
}

template <int N, class Output, class T>
TOWERS_HD inline void relu_backward_item(const Output* output, T* d) {
  const Lanes<Wide<Output>, N> value = load<N>(output);
  Lanes<Wide<T>, N> gradient = load<N>(d);
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i)
    if (value.at[i] <= 0) gradient.at[i] = 0;
  store(d, gradient);
}

template <int N, class From, class To>
TOWERS_HD inline void convert_item(const From* from, To* to) {
  const Lanes<Wide<From>, N> values = load<N>(from);
  Lanes<Wide<To>, N> converted;
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i) converted.at[i] = static_cast<Wide<To>>(values.at[i]);
  store(to, converted);
}

}  // namespace towers::cuda
