#pragma once
// The mean of the towers' gradients.

#include <cstddef>
#include <span>

#include "cpu/simd.h"

namespace towers::cpu {

struct AverageKernels {
  SimdTarget target = 0;  // that these were compiled for
  // out[i] = (towers[0][i] + towers[1][i] + ...) / towers.size(), summed in that order,
  // for begin <= i < end.
  void (*average)(std::span<const float* const> towers, std::size_t begin, std::size_t end,
                  float* out) = nullptr;
};

AverageKernels average_kernels(SimdTarget target);

}  // namespace towers::cpu
