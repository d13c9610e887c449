#pragma once
// All entry points of one vector target.

#include "cpu/average.h"
#include "cpu/bf16.h"
#include "cpu/gemm.h"
#include "cpu/local_response_norm.h"
#include "cpu/max_pool.h"
#include "cpu/update.h"
#include "cpu/winograd.h"

namespace towers::cpu {

struct Kernels {
  explicit Kernels(SimdTarget target)
      : gemm(gemm_kernels(target)),
        pool(pool_kernels(target)),
        norm(norm_kernels(target)),
        update(update_kernels(target)),
        average(average_kernels(target)),
        bf16(bf16_kernels(target)),
        winograd2(winograd_kernels(target, 2)),
        winograd4(winograd_kernels(target, 4)),
        narrow_winograd4(narrow_winograd_kernels(target)) {}

  // That all of them were compiled for.
  SimdTarget target() const { return gemm.target; }

  GemmKernels gemm;
  PoolKernels pool;
  NormKernels norm;
  UpdateKernels update;
  AverageKernels average;
  Bf16Kernels bf16;
  WinogradKernels winograd2, winograd4;
  NarrowWinogradKernels narrow_winograd4;
};

}  // namespace towers::cpu
