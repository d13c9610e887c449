#pragma once
// Max pooling with SAME padding.

#include <cstdint>

#include "core/net.h"
#include "cpu/simd.h"
#include "cpu/view.h"

namespace towers::cpu {

struct PoolShape {
  Extent input, output;
  int size = 0, stride = 0;
  int top = 0, left = 0;  // padding before the first row and column; it never wins
};

// Windows larger than this do not fit the byte that says where the maximum was.
constexpr int kLargestPoolSize = 15;

// One image. `winner` has a byte per output value: the maximum's place in its window, row-major. Of
// equal values the first one wins, as in TensorFlow.
struct PoolKernels {
  SimdTarget target = 0;  // that these were compiled for
  // Where `relu_input` says that the input is the output of a relu, a maximum of zero gets no
  // winner: no gradient passes there, so that backward needs no activations. winner may be null.
  void (*forward)(const PoolShape&, ConstView in, View out, std::uint8_t* winner,
                  bool relu_input) = nullptr;
  // Writes every value of d_in.
  void (*backward)(const PoolShape&, ConstView d_out, const std::uint8_t* winner,
                   View d_in) = nullptr;
};

PoolKernels pool_kernels(SimdTarget target);

}  // namespace towers::cpu
