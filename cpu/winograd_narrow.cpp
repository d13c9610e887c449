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

// Tiles, and vectors of channels, that share loads.
constexpr int kTogether = 2;
constexpr int kVectors = 2;

// Values of kTogether tiles at all positions, for some vectors of channels:
// [vector][position][tile][lane].
template <int n>
struct TileBlock {
  HWY_ALIGN float values[kVectors * n * n * kTogether * kLanes];

  HWY_INLINE float* of(int vector) { return values + vector * n * n * kTogether * kLanes; }
  Positions positions(int vector) { return {of(vector), kTogether * kLanes, kLanes, kLanes, 0}; }
  HWY_INLINE float* at(int vector, int position, int tile) {
    return of(vector) + (position * kTogether + tile) * kLanes;
  }
};

template <int n, int channels, int vectors>
HWY_INLINE void Products(const float* inputs, const float* weights, TileBlock<n>& products) {
  constexpr int kPositions = n * n;
  const D d;
  for (int p = 0; p < kPositions; ++p) {
    const float* first = inputs + p * channels;
    const float* second = first + kPositions * channels;
    V sum[vectors][2];
    HWY_UNROLL(2)
    for (int v = 0; v < vectors; ++v) sum[v][0] = sum[v][1] = hn::Zero(d);
    HWY_UNROLL(4)
    for (int k = 0; k < channels; ++k) {
      const V x0 = hn::Set(d, first[k]), x1 = hn::Set(d, second[k]);
      HWY_UNROLL(2)
      for (int v = 0; v < vectors; ++v) {
        const V w = hn::LoadU(d, weights + ((v * kPositions + p) * channels + k) * kLanes);
        sum[v][0] = hn::MulAdd(x0, w, sum[v][0]);
        sum[v][1] = hn::MulAdd(x1, w, sum[v][1]);
      }
    }
    HWY_UNROLL(2)
    for (int v = 0; v < vectors; ++v) {
      hn::Store(sum[v][0], d, products.at(v, p, 0));
      hn::Store(sum[v][1], d, products.at(v, p, 1));
    }
  }
}

template <int n, int channels, int vectors, int tiles>
HWY_INLINE void AddProducts(const float* inputs, TileBlock<n>& gradient, float* sums) {
  constexpr int kPositions = n * n;
  const D d;
  for (int p = 0; p < kPositions; ++p) {
    V g[vectors][tiles];
    HWY_UNROLL(2)
    for (int v = 0; v < vectors; ++v) {
      HWY_UNROLL(2)
      for (int tile = 0; tile < tiles; ++tile) g[v][tile] = hn::Load(d, gradient.at(v, p, tile));
    }
    HWY_UNROLL(4)
    for (int k = 0; k < channels; ++k) {
      V x[tiles];
      HWY_UNROLL(2)
      for (int tile = 0; tile < tiles; ++tile)
        x[tile] = hn::Set(d, inputs[(tile * kPositions + p) * channels + k]);
      HWY_UNROLL(2)
      for (int v = 0; v < vectors; ++v) {
        float* at = sums + ((v * kPositions + p) * channels + k) * kLanes;
        V sum = hn::LoadU(d, at);
        HWY_UNROLL(2)
        for (int tile = 0; tile < tiles; ++tile) sum = hn::MulAdd(x[tile], g[v][tile], sum);
        hn::StoreU(sum, d, at);
      }
    }
  }
}

// `vectors` vectors of channels from c on; weights are theirs.
template <class W, int channels, bool relu, int vectors>
void ConvolveVectors(const TileGrid& grid, int c, const float* inputs, const float* weights,
                     View out, const Finish& finish) {
  constexpr int m = W::kOutputs, n = W::kTile;
  const int tiles = grid.rows * grid.columns;
  TileBlock<n> products;
  for (int first = 0; first < tiles; first += kTogether) {
    Products<n, channels, vectors>(inputs + first * n * n * channels, weights, products);
    for (int tile = first; tile < std::min(tiles, first + kTogether); ++tile) {
      const int y = tile / grid.columns * m, x = tile % grid.columns * m;
      for (int v = 0; v < vectors; ++v) {
        const Positions positions = products.positions(v);
        const PositionsToOutput<MatricesOf<W>::kBack, relu, false> back{
            positions,
            tile - first,
            out.from(y, x),
            finish,
            {},
            std::min(m, grid.height - y),
            std::min(m, grid.width - x)};
        const std::ptrdiff_t channel = c + v * kLanes, left = grid.channels - channel;
        if (left >= kLanes)
          back.template run<true>(channel, kLanes);
        else
          back.template run<false>(channel, left);
      }
    }
  }
}

template <class W, int channels, int vectors>
void AddVectors(const TileGrid& grid, int c, const float* inputs, ConstView d_out, float* sums,
                float* bias_sums) {
  constexpr int m = W::kOutputs, n = W::kTile;
  const D d;
  const int tiles = grid.rows * grid.columns;
  TileBlock<n> gradient;
  for (int first = 0; first < tiles; first += kTogether) {
    const int count = std::min(kTogether, tiles - first);
    for (int v = 0; v < vectors; ++v) {
      const Positions positions = gradient.positions(v);
      const std::ptrdiff_t channel = c + v * kLanes, left = grid.channels - channel;
      V bias_sum = hn::LoadU(d, bias_sums + channel);
      for (int tile = 0; tile < count; ++tile) {
        const int row = (first + tile) / grid.columns, column = (first + tile) % grid.columns;
        const PixelsToPositions<MatricesOf<W>::kSpread> spread{
            d_out.at(row * m, column * m), d_out.row, d_out.pixel, positions, tile};
        if (left >= kLanes)
          spread.template run<true>(channel, kLanes);
        else
          spread.template run<false>(channel, left);
        bias_sum = hn::Add(bias_sum, hn::Load(d, gradient.at(v, n + 1, tile)));
      }
      hn::StoreU(bias_sum, d, bias_sums + channel);
    }
    const float* from = inputs + first * n * n * channels;
    if (count == kTogether)
      AddProducts<n, channels, vectors, kTogether>(from, gradient, sums);
    else
      AddProducts<n, channels, vectors, 1>(from, gradient, sums);
  }
}

template <class W, int channels, bool relu>
void ConvolveAs(const TileGrid& grid, const float* inputs, const float* weights, View out,
                const Finish& finish) {
  constexpr std::ptrdiff_t kMatrix = W::kTile * W::kTile * channels * kLanes;  // of a vector
  constexpr int kLanesOfBlock = kVectors * static_cast<int>(kLanes);
  int c = 0;
  for (; c + kLanesOfBlock - kLanes < grid.channels;
       c += kLanesOfBlock, weights += kVectors * kMatrix)
    ConvolveVectors<W, channels, relu, kVectors>(grid, c, inputs, weights, out, finish);
  if (c < grid.channels)
    ConvolveVectors<W, channels, relu, 1>(grid, c, inputs, weights, out, finish);
}

template <class W, int channels>
void AddGradientAs(const TileGrid& grid, const float* inputs, ConstView d_out, float* sums,
                   float* bias_sums) {
  constexpr std::ptrdiff_t kMatrix = W::kTile * W::kTile * channels * kLanes;
  constexpr int kLanesOfBlock = kVectors * static_cast<int>(kLanes);
  int c = 0;
  for (; c + kLanesOfBlock - kLanes < grid.channels; c += kLanesOfBlock, sums += kVectors * kMatrix)
    AddVectors<W, channels, kVectors>(grid, c, inputs, d_out, sums, bias_sums);
  if (c < grid.channels) AddVectors<W, channels, 1>(grid, c, inputs, d_out, sums, bias_sums);
}

template <class W, int channels>
void ConvolveChannels(const TileGrid& grid, const float* inputs, const float* weights, View out,
                      const Finish& finish) {
  if (finish.relu)
    ConvolveAs<W, channels, true>(grid, inputs, weights, out, finish);
  else
    ConvolveAs<W, channels, false>(grid, inputs, weights, out, finish);
}

template <class W>
void Convolve(const TileGrid& grid, int channels, const float* inputs, const float* weights,
              View out, const Finish& finish) {
  switch (channels) {
    case 1:
      return ConvolveChannels<W, 1>(grid, inputs, weights, out, finish);
    case 2:
      return ConvolveChannels<W, 2>(grid, inputs, weights, out, finish);
    case 3:
      return ConvolveChannels<W, 3>(grid, inputs, weights, out, finish);
    default:
      return ConvolveChannels<W, 4>(grid, inputs, weights, out, finish);
  }
}

template <class W>
void AddGradient(const TileGrid& grid, int channels, const float* inputs, ConstView d_out,
                 float* sums, float* bias_sums) {
  switch (channels) {
    case 1:
      return AddGradientAs<W, 1>(grid, inputs, d_out, sums, bias_sums);
    case 2:
      return AddGradientAs<W, 2>(grid, inputs, d_out, sums, bias_sums);
    case 3:
      return AddGradientAs<W, 3>(grid, inputs, d_out, sums, bias_sums);
    default:
      return AddGradientAs<W, 4>(grid, inputs, d_out, sums, bias_sums);
  }
}

template <class W>
NarrowWinogradKernels NarrowEntries() {
  return {HWY_TARGET, kLanes, &Convolve<W>, &AddGradient<W>};
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
