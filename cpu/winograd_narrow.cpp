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

// Tiles that share the loads of weights and of their sums.
constexpr int kTogether = 2;

// Values of kTogether tiles at all positions, for one vector of channels: [position][tile][lane].
template <int n>
struct TilePair {
  HWY_ALIGN float values[n * n * kTogether * kLanes];

  Positions positions() { return {values, kTogether * kLanes, kLanes, kLanes, 0}; }
  HWY_INLINE float* at(int position, int tile) {
    return values + (position * kTogether + tile) * kLanes;
  }
};

template <int positions, int channels>
HWY_INLINE void Products(const float* inputs, const float* weights, float* products) {
  const D d;
  for (int p = 0; p < positions; ++p) {
    const float* first = inputs + p * channels;
    const float* second = first + positions * channels;
    V sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    HWY_UNROLL(4)
    for (int k = 0; k < channels; ++k) {
      const V w = hn::LoadU(d, weights + (p * channels + k) * kLanes);
      sum0 = hn::MulAdd(hn::Set(d, first[k]), w, sum0);
      sum1 = hn::MulAdd(hn::Set(d, second[k]), w, sum1);
    }
    hn::Store(sum0, d, products + 2 * p * kLanes);
    hn::Store(sum1, d, products + (2 * p + 1) * kLanes);
  }
}

template <int positions, int channels, int tiles>
HWY_INLINE void AddProducts(const float* inputs, const float* gradient, float* sums) {
  const D d;
  for (int p = 0; p < positions; ++p) {
    HWY_UNROLL(4)
    for (int k = 0; k < channels; ++k) {
      float* at = sums + (p * channels + k) * kLanes;
      V sum = hn::LoadU(d, at);
      HWY_UNROLL(2)
      for (int tile = 0; tile < tiles; ++tile)
        sum = hn::MulAdd(hn::Set(d, inputs[(tile * positions + p) * channels + k]),
                         hn::Load(d, gradient + (kTogether * p + tile) * kLanes), sum);
      hn::StoreU(sum, d, at);
    }
  }
}

template <class W, int channels, bool relu>
void ConvolveAs(const TileGrid& grid, const float* inputs, const float* weights, View out,
                const Finish& finish) {
  constexpr int m = W::kOutputs, n = W::kTile;
  const int tiles = grid.rows * grid.columns;
  TilePair<n> products;
  const Positions positions = products.positions();
  for (int c = 0; c < grid.channels; c += kLanes) {
    for (int first = 0; first < tiles; first += kTogether) {
      Products<n * n, channels>(inputs + first * n * n * channels, weights, products.values);
      for (int tile = first; tile < std::min(tiles, first + kTogether); ++tile) {
        const int y = tile / grid.columns * m, x = tile % grid.columns * m;
        const PositionsToOutput<MatricesOf<W>::kBack, relu, false> back{
            positions,
            tile - first,
            out.from(y, x),
            finish,
            {},
            std::min(m, grid.height - y),
            std::min(m, grid.width - x)};
        if (c + kLanes <= grid.channels)
          back.template run<true>(c, kLanes);
        else
          back.template run<false>(c, grid.channels - c);
      }
    }
    weights += n * n * channels * kLanes;
  }
}

template <class W, int channels>
void AddGradientAs(const TileGrid& grid, const float* inputs, ConstView d_out, float* sums,
                   float* bias_sums) {
  constexpr int m = W::kOutputs, n = W::kTile;
  const D d;
  const int tiles = grid.rows * grid.columns;
  TilePair<n> gradient;
  const Positions positions = gradient.positions();
  for (int c = 0; c < grid.channels; c += kLanes) {
    V bias_sum = hn::LoadU(d, bias_sums + c);
    for (int first = 0; first < tiles; first += kTogether) {
      const int count = std::min(kTogether, tiles - first);
      for (int tile = 0; tile < count; ++tile) {
        const int row = (first + tile) / grid.columns, column = (first + tile) % grid.columns;
        const PixelsToPositions<MatricesOf<W>::kSpread> spread{
            d_out.at(row * m, column * m), d_out.row, d_out.pixel, positions, tile};
        if (c + kLanes <= grid.channels)
          spread.template run<true>(c, kLanes);
        else
          spread.template run<false>(c, grid.channels - c);
        bias_sum = hn::Add(bias_sum, hn::Load(d, gradient.at(n + 1, tile)));
      }
      const float* from = inputs + first * n * n * channels;
      if (count == kTogether)
        AddProducts<n * n, channels, kTogether>(from, gradient.values, sums);
      else
        AddProducts<n * n, channels, 1>(from, gradient.values, sums);
    }
    hn::StoreU(bias_sum, d, bias_sums + c);
    sums += n * n * channels * kLanes;
  }
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
