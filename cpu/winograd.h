#pragma once
// The transforms of Winograd convolution (cpu/winograd_matrices.h), over channels as vectors.
//
// An image is cut into tiles of m x m outputs. Each becomes n x n values per channel, one for each
// position of the transformed tile; at each position the convolution is a matrix product over
// channels, and so are both of its gradients.

#include <cstddef>

#include "cpu/simd.h"
#include "cpu/view.h"

namespace towers::cpu {

// The tiles of some images, numbered by image, row and column.
struct TileGrid {
  int images = 0, rows = 0, columns = 0;  // rows and columns of tiles in each image
  int height = 0, width = 0;              // of each image: what lies beyond is not written
  int channels = 0;
};

// Transformed values: those of position p, tile (or row of weights) t and channel c are at
// data[p * position + t * tile + c / panel * panel_stride + c % panel]. Channels are filled up with
// zeros to a whole vector.
struct Positions {
  float* data = nullptr;
  std::ptrdiff_t position = 0, tile = 0;
  std::ptrdiff_t panel = 0, panel_stride = 0;
};

// Weights, or their gradients, at each position of the kernel: element (k, row, column) is
// data[k * step + row * row_stride + column].
template <class T>
struct BasicWeights {
  T* data = nullptr;
  std::ptrdiff_t step = 0, row_stride = 0;
  int rows = 0, columns = 0;
};

// What becomes of an output before it is stored.
struct Finish {
  const float* biases = nullptr;  // added, where not null; filled up to a whole vector
  bool relu = false;              // max(0, x); NaN stays NaN
  ConstView gate;                 // where its data is not null: zero where it is not positive
};

struct WinogradKernels {
  SimdTarget target = 0;               // that these were compiled for
  int outputs = 0, kernel = 0, n = 0;  // m, r, n = m + r - 1

  // Of n x n values at `outputs` values' distance: in starts at the first tile's, padding included.
  void (*transform_image)(const TileGrid&, ConstView in, const Positions& out) = nullptr;
  // The transpose of transform_back: of m x m values of an output's gradient.
  void (*spread_gradient)(const TileGrid&, ConstView d_out, const Positions& out) = nullptr;
  // Rows and channels of `out` are the weights' rows and columns.
  void (*transform_weights)(const BasicWeights<const float>&, const Positions& out) = nullptr;
  // m x m outputs from n x n products.
  void (*transform_back)(const TileGrid&, const Positions& in, View out, const Finish&) = nullptr;
  // The transpose of transform_weights; overwrites the gradients.
  void (*gather_weights)(const Positions& in, const BasicWeights<float>&) = nullptr;

  int positions() const { return n * n; }
  // The position whose spread gradient is the sum over a tile: that of point 1, in both directions.
  int position_of_sums() const { return n + 1; }
};

// For kernels of 5 x 5; outputs: 2 or 4.
WinogradKernels winograd_kernels(SimdTarget target, int outputs);

// F(4 x 4, 5 x 5) of coloured pictures, tile by tile: of so few channels a matrix product at each
// position would move more values than it multiplies. All products of a tile stay in registers.
//
// inputs holds an image's transformed tiles, [tile][position][channel] without gaps; weights and
// sums are [vector of outputs][position][channel][lane].
struct NarrowWinogradKernels {
  static constexpr int kOutputs = 4, kKernel = 5, kTile = 8;  // of WinogradKernels, m, r, n
  static constexpr int kChannels = 3;                         // of the images

  SimdTarget target = 0;     // that these were compiled for
  std::ptrdiff_t lanes = 0;  // of a vector
  int together = 0;          // convolve reads up to so many tiles, less one, beyond the last

  // From where the first tile starts, padding included; the image's pixels lie side by side.
  // `half` has half_size values. Writes up to a vector beyond the last tile's.
  void (*transform)(const TileGrid&, ConstView in, float* half, float* inputs) = nullptr;
  // grid.channels are the outputs'.
  void (*convolve)(const TileGrid&, const float* inputs, const float* weights, View out,
                   const Finish&) = nullptr;
  // Adds to sums the gradient of the transformed weights, to bias_sums (a whole number of vectors)
  // that of the biases.
  void (*add_gradient)(const TileGrid&, const float* inputs, ConstView d_out, float* sums,
                       float* bias_sums) = nullptr;

  // Scratch memory of `transform`: the rows that a row of tiles spans.
  std::ptrdiff_t half_size(const TileGrid& grid) const {
    return kTile * ((grid.columns * kOutputs + kKernel - 1) * kChannels + lanes);
  }
};

NarrowWinogradKernels narrow_winograd_kernels(SimdTarget target);

}  // namespace towers::cpu
