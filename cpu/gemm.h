#pragma once
// The one matrix multiplication under convolutions and dense layers.

#include <cstddef>

#include "cpu/simd.h"

namespace towers::cpu {

// C = A * B, and then what the fields below add. C is rows x columns, row-major.
//
// A is read where it lies. Its column index is k = s * segment_length + j, and element (i, k) is
// a[i * a_row + s * a_segment + j * a_k]: a convolution's window over a padded image is `kernel`
// segments (one per kernel row) of `kernel * channels` contiguous values, so no patch matrix is
// built.
//
// B is packed (pack_panels): panels of GemmKernels::panel columns, the last one filled up with
// zeros. Every element of C is one chain of multiply-adds over ascending k, whatever the tiling, so
// the bytes do not depend on how rows and columns are shared out.
struct Gemm {
  const float* a = nullptr;
  std::ptrdiff_t a_row = 0, a_k = 1, a_segment = 0;
  std::ptrdiff_t segments = 1, segment_length = 0;
  const float* b = nullptr;
  float* c = nullptr;
  std::ptrdiff_t c_row = 0;
  std::ptrdiff_t rows = 0, columns = 0;

  bool accumulate = false;        // C += A * B
  const float* bias = nullptr;    // + bias[column]; readable up to a whole panel
  bool relu = false;              // max(0, x); NaN stays NaN
  const float* scaled = nullptr;  // + scale * scaled, which has C's shape and strides
  float scale = 0;
};

// Packs a K x columns matrix, element (k, n) at source[k * k_stride + n * column_stride], into
// panels `panel_stride` values apart: panel p holds [K][panel].
struct Packing {
  const float* source = nullptr;
  std::ptrdiff_t k_stride = 0, column_stride = 1;
  std::ptrdiff_t k = 0, columns = 0;
  float* packed = nullptr;
  std::ptrdiff_t panel_stride = 0;
};

struct GemmKernels {
  std::ptrdiff_t panel = 0;  // columns of a panel: two vectors
  void (*gemm)(const Gemm&) = nullptr;
  void (*pack_panels)(const Packing&) = nullptr;
  // out[column] (+)= sum over k of a packed K x columns matrix with adjacent panels.
  void (*column_sums)(const float* packed, std::ptrdiff_t k, std::ptrdiff_t columns,
                      bool accumulate, float* out) = nullptr;

  std::ptrdiff_t padded(std::ptrdiff_t columns) const {
    return (columns + panel - 1) / panel * panel;
  }
};

GemmKernels gemm_kernels(SimdTarget target);

}  // namespace towers::cpu
