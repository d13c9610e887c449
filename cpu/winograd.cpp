#include "cpu/winograd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/winograd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/winograd_transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

template <const auto& matrix, int m>
HWY_INLINE void TransformTiles(const TileGrid& grid, ConstView in, const Positions& out) {
  std::ptrdiff_t tile = 0;
  for (int image = 0; image < grid.images; ++image)
    for (int row = 0; row < grid.rows; ++row)
      for (int column = 0; column < grid.columns; ++column)
        ForChannels(grid.channels, PixelsToPositions<matrix>{in.of(image).at(row * m, column * m),
                                                             in.row, in.pixel, out, tile++});
}

template <class W>
void TransformImage(const TileGrid& grid, ConstView in, const Positions& out) {
  TransformTiles<MatricesOf<W>::kImage, W::kOutputs>(grid, in, out);
}

template <class W>
void SpreadGradient(const TileGrid& grid, ConstView d_out, const Positions& out) {
  TransformTiles<MatricesOf<W>::kSpread, W::kOutputs>(grid, d_out, out);
}

template <class W, bool relu, bool gated>
void TransformBackAs(const TileGrid& grid, const Positions& in, View out, const Finish& finish) {
  constexpr int m = W::kOutputs;
  std::ptrdiff_t tile = 0;
  for (int image = 0; image < grid.images; ++image) {
    const View to = out.of(image);
    const ConstView gate = gated ? finish.gate.of(image) : ConstView{};
    for (int y = 0; y < grid.height; y += m)
      for (int x = 0; x < grid.width; x += m)
        ForChannels(grid.channels,
                    PositionsToOutput<MatricesOf<W>::kBack, relu, gated>{
                        in, tile++, to.from(y, x), finish, gated ? gate.from(y, x) : gate,
                        std::min(m, grid.height - y), std::min(m, grid.width - x)});
  }
}

template <class W>
void TransformBack(const TileGrid& grid, const Positions& in, View out, const Finish& finish) {
  if (finish.gate.data != nullptr)
    TransformBackAs<W, false, true>(grid, in, out, finish);
  else if (finish.relu)
    TransformBackAs<W, true, false>(grid, in, out, finish);
  else
    TransformBackAs<W, false, false>(grid, in, out, finish);
}

template <class W>
void TransformWeights(const BasicWeights<const float>& weights, const Positions& out) {
  for (int row = 0; row < weights.rows; ++row)
    ForChannels(weights.columns, PixelsToPositions<MatricesOf<W>::kWeights>{
                                     weights.data + row * weights.row_stride,
                                     W::kKernel * weights.step, weights.step, out, row});
}

template <class W>
void GatherWeights(const Positions& in, const BasicWeights<float>& weights) {
  for (int row = 0; row < weights.rows; ++row)
    ForChannels(weights.columns, PositionsToPixels<MatricesOf<W>::kGather>{
                                     in, row, weights.data + row * weights.row_stride,
                                     W::kKernel * weights.step, weights.step});
}

template <class W>
WinogradKernels Entries() {
  return {HWY_TARGET,         W::kOutputs,        W::kKernel,           W::kTile,
          &TransformImage<W>, &SpreadGradient<W>, &TransformWeights<W>, &TransformBack<W>,
          &GatherWeights<W>};
}

WinogradKernels Winograd2Entries() {
  return Entries<Winograd<2, 5>>();
}
WinogradKernels Winograd4Entries() {
  return Entries<Winograd<4, 5>>();
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(Winograd2Entries);
HWY_EXPORT(Winograd4Entries);
WinogradKernels winograd_kernels(SimdTarget target, int outputs) {
  if (outputs == 2) return entry_for(target, HWY_DISPATCH_TABLE(Winograd2Entries))();
  return entry_for(target, HWY_DISPATCH_TABLE(Winograd4Entries))();
}
}  // namespace towers::cpu
#endif
