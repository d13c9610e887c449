#pragma once
// The one matrix multiplication under convolutions and dense layers.

#include <cstddef>

#include "cpu/simd.h"

namespace towers::cpu {

// C = start + A * B, then relu. C has groups * rows rows: row i of group g is at
// c + g * c_group + i * c_row, and `columns` values long.
//
// A is read where it lies. Its column index is k = s * segment_length + j, and element (g, i, k) is
// a[g * a_group + i * a_row + s * a_segment + j * a_k]: a convolution's window over a padded image
// is `kernel` segments (one per kernel row) of `kernel * channels` contiguous values, so no patch
// matrix is built; its groups are the rows of the output.
//
// B is packed where b_k is 0: pack_panels' panels of GemmKernels::panel columns, the last one
// filled up with zeros, one behind the other, so segments * segment_length * panel values apart.
// Elsewhere it is read where it lies and packed on the way, with element (k, n) at
// b[k * b_k + n * b_column].
//
// Every element of C is one chain of multiply-adds over ascending k, whatever the tiling, so the
// bytes do not depend on how rows and columns are shared out.
struct Gemm {
  const float* a = nullptr;
  std::ptrdiff_t a_group = 0, a_row = 0, a_segment = 0, a_k = 1;
  std::ptrdiff_t segments = 1, segment_length = 0;
  const float* b = nullptr;
  std::ptrdiff_t b_k = 0, b_column = 1;
  float* c = nullptr;
  std::ptrdiff_t c_group = 0, c_row = 0;
  std::ptrdiff_t groups = 1, rows = 0, columns = 0;

  // What the sums start from, times start_scale: null for zero; else that of row i of each group is
  // at start + i * start_row, `columns` values long: a bias with a stride of zero, a weight with
  // c's, and of one group `c` itself to accumulate.
  const float* start = nullptr;
  std::ptrdiff_t start_row = 0;
  float start_scale = 1;
  bool relu = false;  // max(0, x); NaN stays NaN
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
  SimdTarget target = 0;     // that these were compiled for
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
