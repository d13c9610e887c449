#include <algorithm>

#include "cpu/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/winograd_narrow.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/winograd_transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

// Tiles that share loads of weights and sums: few enough that a column of the products of each
// stays in registers.
constexpr int kTogether = 3;

using W = Winograd<NarrowWinogradKernels::kOutputs, NarrowWinogradKernels::kKernel>;
using Matrices = MatricesOf<W>;
constexpr int kOutputs = W::kOutputs, kTile = W::kTile;
constexpr int kChannels = NarrowWinogradKernels::kChannels;  // of the images
constexpr int kTileValues = kTile * kTile * kChannels;       // of a transformed tile

// A row of tiles' pixels as one line of values: its columns are transformed without regard to
// tiles.
struct ColumnsToPoints {
  ConstView in;
  float* half;
  std::ptrdiff_t half_row;

  template <bool whole>
  HWY_INLINE void run(std::ptrdiff_t at, std::ptrdiff_t count) const {
    V x[kTile], y[kTile];
    LoadColumn(Pixels<whole>{{count}, in.data + at, in.row, 0}, 0, x,
               std::make_integer_sequence<int, kTile>());
    Multiply<Matrices::kImage>(x, y);
    HWY_UNROLL(8)
    for (int i = 0; i < kTile; ++i) hn::StoreU(y[i], D(), half + i * half_row + at);
  }
};

// Along a row, a vector is one pixel's channels (one channel on targets without vectors); those it
// has more are written over by the next one's.
void TransformNarrow(const TileGrid& grid, ConstView in, float* half, float* inputs) {
  const hn::CappedTag<float, 4> d;
  using Pixel = hn::Vec<decltype(d)>;
  const std::ptrdiff_t line = (grid.columns * kOutputs + kTile - kOutputs) * kChannels;
  const std::ptrdiff_t half_row = line + kLanes;
  for (int row = 0; row < grid.rows; ++row) {
    ForChannels(line, ColumnsToPoints{in.from(row * kOutputs, 0), half, half_row});
    for (int column = 0; column < grid.columns; ++column)
      for (int i = 0; i < kTile; ++i, inputs += kTile * kChannels)
        for (int c = 0; c < kChannels; c += static_cast<int>(hn::MaxLanes(d))) {
          const float* from = half + i * half_row + column * kOutputs * kChannels + c;
          Pixel x[kTile], y[kTile];
          HWY_UNROLL(8)
          for (int j = 0; j < kTile; ++j) x[j] = hn::LoadU(d, from + j * kChannels);
          Multiply<Matrices::kImage>(x, y);
          HWY_UNROLL(8)
          for (int j = 0; j < kTile; ++j) hn::StoreU(y[j], d, inputs + j * kChannels + c);
        }
  }
}

// One column of the products of each tile, for one vector of outputs.
HWY_INLINE void MultiplyColumn(const float* inputs, const float* weights, int column,
                               V (&products)[kTogether][kTile]) {
  const D d;
  HWY_UNROLL(8)
  for (int i = 0; i < kTile; ++i) {
    const int at = (i * kTile + column) * kChannels;
    V sum[kTogether];
    HWY_UNROLL(3)
    for (int t = 0; t < kTogether; ++t) sum[t] = hn::Zero(d);
    HWY_UNROLL(4)
    for (int k = 0; k < kChannels; ++k) {
      const V w = hn::LoadU(d, weights + (at + k) * kLanes);
      HWY_UNROLL(3)
      for (int t = 0; t < kTogether; ++t)
        sum[t] = hn::MulAdd(hn::Set(d, inputs[t * kTileValues + at + k]), w, sum[t]);
    }
    HWY_UNROLL(3)
    for (int t = 0; t < kTogether; ++t) products[t][i] = sum[t];
  }
}

// `count` outputs from c on: one vector. weights are theirs.
template <bool relu, bool whole>
void ConvolveVector(const TileGrid& grid, std::ptrdiff_t c, std::ptrdiff_t count,
                    const float* inputs, const float* weights, View out, const Finish& finish) {
  const V bias = hn::LoadU(D(), finish.biases + c);
  const int tiles = grid.rows * grid.columns;
  for (int first = 0; first < tiles; first += kTogether) {
    V half[kTogether][kOutputs * kTile];
    for (int column = 0; column < kTile; ++column) {
      V products[kTogether][kTile];
      MultiplyColumn(inputs + first * kTileValues, weights, column, products);
      HWY_UNROLL(3)
      for (int t = 0; t < kTogether; ++t) {
        V y[kOutputs];
        Multiply<Matrices::kBack>(products[t], y);
        HWY_UNROLL(4)
        for (int row = 0; row < kOutputs; ++row) half[t][row * kTile + column] = y[row];
      }
    }
    for (int t = 0; t < std::min(kTogether, tiles - first); ++t) {
      const int y = (first + t) / grid.columns * kOutputs;
      const int x = (first + t) % grid.columns * kOutputs;
      const View to = out.from(y, x);
      const OutputPixels<whole, relu, false> pixels{{count},
                                                    to.data + c,
                                                    to.row,
                                                    to.pixel,
                                                    std::min(kOutputs, grid.height - y),
                                                    std::min(kOutputs, grid.width - x),
                                                    bias,
                                                    nullptr,
                                                    0,
                                                    0};
      for (int row = 0; row < kOutputs; ++row) {
        V values[kOutputs];
        Multiply<Matrices::kBack>(half[t] + row * kTile, values);
        StoreRow(pixels, row, values, std::make_integer_sequence<int, kOutputs>());
      }
    }
  }
}

// Adds what `tiles` tiles from `first` on give to the sums of one vector of outputs.
template <bool whole, int tiles>
HWY_INLINE void AddTiles(const TileGrid& grid, int first, std::ptrdiff_t c, std::ptrdiff_t count,
                         const float* inputs, ConstView d_out, float* sums, float* bias_sums) {
  const D d;
  V half[tiles][kTile * kOutputs];
  for (int t = 0; t < tiles; ++t) {
    const int y = (first + t) / grid.columns * kOutputs;
    const int x = (first + t) % grid.columns * kOutputs;
    const Pixels<whole> pixels{{count}, d_out.at(y, x) + c, d_out.row, d_out.pixel};
    for (int column = 0; column < kOutputs; ++column) {
      V values[kOutputs], spread[kTile];
      LoadColumn(pixels, column, values, std::make_integer_sequence<int, kOutputs>());
      Multiply<Matrices::kSpread>(values, spread);
      HWY_UNROLL(8)
      for (int row = 0; row < kTile; ++row) half[t][row * kOutputs + column] = spread[row];
    }
  }
  inputs += first * kTileValues;
  for (int row = 0; row < kTile; ++row) {
    V gradient[tiles][kTile];
    HWY_UNROLL(3)
    for (int t = 0; t < tiles; ++t)
      Multiply<Matrices::kSpread>(half[t] + row * kOutputs, gradient[t]);
    if (row == 1) {  // at position_of_sums
      V sum = hn::LoadU(d, bias_sums + c);
      for (int t = 0; t < tiles; ++t) sum = hn::Add(sum, gradient[t][1]);
      hn::StoreU(sum, d, bias_sums + c);
    }
    HWY_UNROLL(8)
    for (int column = 0; column < kTile; ++column) {
      HWY_UNROLL(4)
      for (int k = 0; k < kChannels; ++k) {
        const int at = (row * kTile + column) * kChannels + k;
        V sum = hn::LoadU(d, sums + at * kLanes);
        HWY_UNROLL(3)
        for (int t = 0; t < tiles; ++t)
          sum = hn::MulAdd(hn::Set(d, inputs[t * kTileValues + at]), gradient[t][column], sum);
        hn::StoreU(sum, d, sums + at * kLanes);
      }
    }
  }
}

template <bool whole>
void AddVector(const TileGrid& grid, std::ptrdiff_t c, std::ptrdiff_t count, const float* inputs,
               ConstView d_out, float* sums, float* bias_sums) {
  const int tiles = grid.rows * grid.columns;
  int first = 0;
  for (; first + kTogether <= tiles; first += kTogether)
    AddTiles<whole, kTogether>(grid, first, c, count, inputs, d_out, sums, bias_sums);
  for (; first < tiles; ++first)
    AddTiles<whole, 1>(grid, first, c, count, inputs, d_out, sums, bias_sums);
}

// For each vector of outputs; weights and sums are those of the first one.
template <bool relu>
struct ConvolveVectors {
  const TileGrid& grid;
  const float* inputs;
  const float* weights;
  View out;
  const Finish& finish;

  template <bool whole>
  void run(std::ptrdiff_t c, std::ptrdiff_t count) const {
    ConvolveVector<relu, whole>(grid, c, count, inputs, weights + c * kTileValues, out, finish);
  }
};

struct AddVectors {
  const TileGrid& grid;
  const float* inputs;
  ConstView d_out;
  float* sums;
  float* bias_sums;

  template <bool whole>
  void run(std::ptrdiff_t c, std::ptrdiff_t count) const {
    AddVector<whole>(grid, c, count, inputs, d_out, sums + c * kTileValues, bias_sums);
  }
};

void Convolve(const TileGrid& grid, const float* inputs, const float* weights, View out,
              const Finish& finish) {
  if (finish.relu)
    ForChannels(grid.channels, ConvolveVectors<true>{grid, inputs, weights, out, finish});
  else
    ForChannels(grid.channels, ConvolveVectors<false>{grid, inputs, weights, out, finish});
}

void AddGradient(const TileGrid& grid, const float* inputs, ConstView d_out, float* sums,
                 float* bias_sums) {
  ForChannels(grid.channels, AddVectors{grid, inputs, d_out, sums, bias_sums});
}

NarrowWinogradKernels NarrowWinogradEntries() {
  return {HWY_TARGET, kLanes, kTogether, &TransformNarrow, &Convolve, &AddGradient};
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(NarrowWinogradEntries);
NarrowWinogradKernels narrow_winograd_kernels(SimdTarget target) {
  return entry_for(target, HWY_DISPATCH_TABLE(NarrowWinogradEntries))();
}
}  // namespace towers::cpu
#endif
