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

// Values of a transformed tile of `channels` channels.
template <class W, int channels>
constexpr int kTileValues = W::kTile* W::kTile* channels;

// A row of tiles' pixels as one line of values: its columns are transformed without regard to
// tiles.
template <const auto& m>
struct ColumnsToPoints {
  ConstView in;
  float* half;
  std::ptrdiff_t half_row;

  template <bool whole>
  HWY_INLINE void run(std::ptrdiff_t at, std::ptrdiff_t count) const {
    V x[m.kColumns], y[m.kRows];
    LoadColumn(Pixels<whole>{{count}, in.data + at, in.row, 0}, 0, x,
               std::make_integer_sequence<int, m.kColumns>());
    Multiply<m>(x, y);
    HWY_UNROLL(8)
    for (int i = 0; i < m.kRows; ++i) hn::StoreU(y[i], D(), half + i * half_row + at);
  }
};

// Along a row, a vector is one pixel's channels (one channel on targets without vectors); those it
// has more are written over by the next one's.
template <class W>
void TransformNarrow(const TileGrid& grid, int channels, ConstView in, float* half, float* inputs) {
  constexpr int m = W::kOutputs, n = W::kTile;
  constexpr const auto& kImage = MatricesOf<W>::kImage;
  const hn::CappedTag<float, 4> d;
  using Pixel = hn::Vec<decltype(d)>;
  const std::ptrdiff_t line = (grid.columns * m + n - m) * channels, half_row = line + kLanes;
  for (int row = 0; row < grid.rows; ++row) {
    ForChannels(line, ColumnsToPoints<kImage>{in.from(row * m, 0), half, half_row});
    for (int column = 0; column < grid.columns; ++column)
      for (int i = 0; i < n; ++i, inputs += n * channels)
        for (int c = 0; c < channels; c += static_cast<int>(hn::MaxLanes(d))) {
          const float* from = half + i * half_row + column * m * channels + c;
          Pixel x[n], y[n];
          HWY_UNROLL(8)
          for (int j = 0; j < n; ++j) x[j] = hn::LoadU(d, from + j * channels);
          Multiply<kImage>(x, y);
          HWY_UNROLL(8)
          for (int j = 0; j < n; ++j) hn::StoreU(y[j], d, inputs + j * channels + c);
        }
  }
}

// One column of the products of each tile, for one vector of outputs.
template <int n, int channels>
HWY_INLINE void MultiplyColumn(const float* inputs, const float* weights, int column,
                               V (&products)[kTogether][n]) {
  const D d;
  HWY_UNROLL(8)
  for (int i = 0; i < n; ++i) {
    const int at = (i * n + column) * channels;
    V sum[kTogether];
    HWY_UNROLL(3)
    for (int t = 0; t < kTogether; ++t) sum[t] = hn::Zero(d);
    HWY_UNROLL(4)
    for (int k = 0; k < channels; ++k) {
      const V w = hn::LoadU(d, weights + (at + k) * kLanes);
      HWY_UNROLL(3)
      for (int t = 0; t < kTogether; ++t)
        sum[t] = hn::MulAdd(hn::Set(d, inputs[t * n * n * channels + at + k]), w, sum[t]);
    }
    HWY_UNROLL(3)
    for (int t = 0; t < kTogether; ++t) products[t][i] = sum[t];
  }
}

// `count` outputs from c on: one vector. weights are theirs.
template <class W, int channels, bool relu, bool whole>
void ConvolveVector(const TileGrid& grid, std::ptrdiff_t c, std::ptrdiff_t count,
                    const float* inputs, const float* weights, View out, const Finish& finish) {
  constexpr int m = W::kOutputs, n = W::kTile;
  constexpr const auto& kBack = MatricesOf<W>::kBack;
  const V bias = hn::LoadU(D(), finish.biases + c);
  const int tiles = grid.rows * grid.columns;
  for (int first = 0; first < tiles; first += kTogether) {
    V half[kTogether][m * n];
    for (int column = 0; column < n; ++column) {
      V products[kTogether][n];
      MultiplyColumn<n, channels>(inputs + first * kTileValues<W, channels>, weights, column,
                                  products);
      HWY_UNROLL(3)
      for (int t = 0; t < kTogether; ++t) {
        V y[m];
        Multiply<kBack>(products[t], y);
        HWY_UNROLL(4)
        for (int row = 0; row < m; ++row) half[t][row * n + column] = y[row];
      }
    }
    for (int t = 0; t < std::min(kTogether, tiles - first); ++t) {
      const int y = (first + t) / grid.columns * m, x = (first + t) % grid.columns * m;
      const View to = out.from(y, x);
      const OutputPixels<whole, relu, false> pixels{{count},
                                                    to.data + c,
                                                    to.row,
                                                    to.pixel,
                                                    std::min(m, grid.height - y),
                                                    std::min(m, grid.width - x),
                                                    bias,
                                                    nullptr,
                                                    0,
                                                    0};
      for (int row = 0; row < m; ++row) {
        V values[m];
        Multiply<kBack>(half[t] + row * n, values);
        StoreRow(pixels, row, values, std::make_integer_sequence<int, m>());
      }
    }
  }
}

// Adds what `tiles` tiles from `first` on give to the sums of one vector of outputs.
template <class W, int channels, bool whole, int tiles>
HWY_INLINE void AddTiles(const TileGrid& grid, int first, std::ptrdiff_t c, std::ptrdiff_t count,
                         const float* inputs, ConstView d_out, float* sums, float* bias_sums) {
  constexpr int m = W::kOutputs, n = W::kTile;
  constexpr const auto& kSpread = MatricesOf<W>::kSpread;
  const D d;
  V half[tiles][n * m];
  for (int t = 0; t < tiles; ++t) {
    const int y = (first + t) / grid.columns * m, x = (first + t) % grid.columns * m;
    const Pixels<whole> pixels{{count}, d_out.at(y, x) + c, d_out.row, d_out.pixel};
    for (int column = 0; column < m; ++column) {
      V values[m], spread[n];
      LoadColumn(pixels, column, values, std::make_integer_sequence<int, m>());
      Multiply<kSpread>(values, spread);
      HWY_UNROLL(8)
      for (int row = 0; row < n; ++row) half[t][row * m + column] = spread[row];
    }
  }
  inputs += first * kTileValues<W, channels>;
  for (int row = 0; row < n; ++row) {
    V gradient[tiles][n];
    HWY_UNROLL(3)
    for (int t = 0; t < tiles; ++t) Multiply<kSpread>(half[t] + row * m, gradient[t]);
    if (row == 1) {  // at position_of_sums
      V sum = hn::LoadU(d, bias_sums + c);
      for (int t = 0; t < tiles; ++t) sum = hn::Add(sum, gradient[t][1]);
      hn::StoreU(sum, d, bias_sums + c);
    }
    HWY_UNROLL(8)
    for (int column = 0; column < n; ++column) {
      HWY_UNROLL(4)
      for (int k = 0; k < channels; ++k) {
        const int at = (row * n + column) * channels + k;
        V sum = hn::LoadU(d, sums + at * kLanes);
        HWY_UNROLL(3)
        for (int t = 0; t < tiles; ++t)
          sum = hn::MulAdd(hn::Set(d, inputs[t * kTileValues<W, channels> + at]),
                           gradient[t][column], sum);
        hn::StoreU(sum, d, sums + at * kLanes);
      }
    }
  }
}

template <class W, int channels, bool whole>
void AddVector(const TileGrid& grid, std::ptrdiff_t c, std::ptrdiff_t count, const float* inputs,
               ConstView d_out, float* sums, float* bias_sums) {
  const int tiles = grid.rows * grid.columns;
  int first = 0;
  for (; first + kTogether <= tiles; first += kTogether)
    AddTiles<W, channels, whole, kTogether>(grid, first, c, count, inputs, d_out, sums, bias_sums);
  for (; first < tiles; ++first)
    AddTiles<W, channels, whole, 1>(grid, first, c, count, inputs, d_out, sums, bias_sums);
}

// For each vector of outputs; weights and sums are those of the first one.
template <class W, int channels, bool relu>
struct ConvolveVectors {
  const TileGrid& grid;
  const float* inputs;
  const float* weights;
  View out;
  const Finish& finish;

  template <bool whole>
  void run(std::ptrdiff_t c, std::ptrdiff_t count) const {
    ConvolveVector<W, channels, relu, whole>(grid, c, count, inputs,
                                             weights + c * kTileValues<W, channels>, out, finish);
  }
};

template <class W, int channels>
struct AddVectors {
  const TileGrid& grid;
  const float* inputs;
  ConstView d_out;
  float* sums;
  float* bias_sums;

  template <bool whole>
  void run(std::ptrdiff_t c, std::ptrdiff_t count) const {
    AddVector<W, channels, whole>(grid, c, count, inputs, d_out,
                                  sums + c * kTileValues<W, channels>, bias_sums);
  }
};

template <class W, int channels>
void ConvolveChannels(const TileGrid& grid, const float* inputs, const float* weights, View out,
                      const Finish& finish) {
  if (finish.relu)
    ForChannels(grid.channels,
                ConvolveVectors<W, channels, true>{grid, inputs, weights, out, finish});
  else
    ForChannels(grid.channels,
                ConvolveVectors<W, channels, false>{grid, inputs, weights, out, finish});
}

template <class W>
void Convolve(const TileGrid& grid, int channels, const float* inputs, const float* weights,
              View out, const Finish& finish) {
  if (channels == 1)
    ConvolveChannels<W, 1>(grid, inputs, weights, out, finish);
  else
    ConvolveChannels<W, 3>(grid, inputs, weights, out, finish);
}

template <class W, int channels>
void AddGradientOf(const TileGrid& grid, const float* inputs, ConstView d_out, float* sums,
                   float* bias_sums) {
  ForChannels(grid.channels, AddVectors<W, channels>{grid, inputs, d_out, sums, bias_sums});
}

template <class W>
void AddGradient(const TileGrid& grid, int channels, const float* inputs, ConstView d_out,
                 float* sums, float* bias_sums) {
  if (channels == 1)
    AddGradientOf<W, 1>(grid, inputs, d_out, sums, bias_sums);
  else
    AddGradientOf<W, 3>(grid, inputs, d_out, sums, bias_sums);
}

template <class W>
NarrowWinogradKernels NarrowEntries() {
  return {HWY_TARGET, kLanes, kTogether, &TransformNarrow<W>, &Convolve<W>, &AddGradient<W>};
}

NarrowWinogradKernels NarrowWinograd2Entries() {
  return NarrowEntries<Winograd<2, 5>>();
}
NarrowWinogradKernels NarrowWinograd4Entries() {
  return NarrowEntries<Winograd<4, 5>>();
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(NarrowWinograd2Entries);
HWY_EXPORT(NarrowWinograd4Entries);
NarrowWinogradKernels narrow_winograd_kernels(SimdTarget target, int outputs) {
  if (outputs == 2) return entry_for(target, HWY_DISPATCH_TABLE(NarrowWinograd2Entries))();
  return entry_for(target, HWY_DISPATCH_TABLE(NarrowWinograd4Entries))();
}
}  // namespace towers::cpu
#endif
