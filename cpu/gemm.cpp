#include "cpu/gemm.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr std::ptrdiff_t kLanes = static_cast<std::ptrdiff_t>(hn::MaxLanes(D()));
constexpr std::ptrdiff_t kPanel = 2 * kLanes;
// Rows of a tile: as many accumulators as the registers leave beside two vectors of B and one of A.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kRows = 12;
#else
constexpr int kRows = 6;
#endif

// Where a tile goes, for the code that does not depend on its number of rows.
struct Place {
  std::ptrdiff_t row, rows, column;
};

// Adds what `g` asks for to the tile and stores it. Through memory, so that it is compiled once and
// not for every number of rows: a few cycles beside the hundreds or thousands of the sums.
HWY_NOINLINE void StoreTile(const Gemm& g, const Place& place, float* tile) {
  const D d;
  const std::ptrdiff_t columns = std::min(kPanel, g.columns - place.column);
  HWY_ALIGN float edge[kPanel];
  for (std::ptrdiff_t i = 0; i < place.rows; ++i, tile += kPanel) {
    const std::ptrdiff_t at = (place.row + i) * g.c_row + place.column;
    float* c = g.c + at;
    const float* old = c;
    const float* scaled = g.scaled == nullptr ? nullptr : g.scaled + at;
    if (columns != kPanel) {  // whole vectors only below
      if (g.accumulate) std::copy_n(old, columns, edge);
      if (g.accumulate) old = edge;
      if (scaled != nullptr)
        for (std::ptrdiff_t n = 0; n < columns; ++n) tile[n] += g.scale * scaled[n];
      scaled = nullptr;
      c = tile;
    }
    for (std::ptrdiff_t lane = 0; lane < kPanel; lane += kLanes) {
      V x = hn::Load(d, tile + lane);
      if (g.accumulate) x = hn::Add(x, hn::LoadU(d, old + lane));
      if (scaled != nullptr)
        x = hn::Add(x, hn::Mul(hn::Set(d, g.scale), hn::LoadU(d, scaled + lane)));
      if (g.bias != nullptr) x = hn::Add(x, hn::LoadU(d, g.bias + place.column + lane));
      // The second operand is what x86 returns where one is NaN.
      if (g.relu) x = hn::Max(hn::Zero(d), x);
      hn::StoreU(x, d, c + lane);
    }
    if (columns != kPanel) std::copy_n(tile, columns, g.c + at);
  }
}

// The sums of one tile of C: R rows, one panel.
template <int R>
HWY_NOINLINE void SumTile(const Gemm& g, const float* a, const float* b, float* tile) {
  const D d;
  V sum[R][2];
  HWY_UNROLL(16)
  for (int i = 0; i < R; ++i) sum[i][0] = sum[i][1] = hn::Zero(d);

  // Every third row has a pointer of its own, the others are one or two strides away: few enough
  // addresses for the registers.
  constexpr int kPointers = (R + 2) / 3;
  const std::ptrdiff_t stride = g.a_row;
  for (std::ptrdiff_t s = 0; s < g.segments; ++s) {
    const float* p[kPointers];
    HWY_UNROLL(16)
    for (int i = 0; i < kPointers; ++i) p[i] = a + s * g.a_segment + 3 * i * stride;
    for (std::ptrdiff_t k = 0; k < g.segment_length; ++k) {
      const V b0 = hn::LoadU(d, b);
      const V b1 = hn::LoadU(d, b + kLanes);
      b += kPanel;
      HWY_UNROLL(16)
      for (int i = 0; i < R; ++i) {
        const V x = hn::Set(d, p[i / 3][(i % 3) * stride]);
        sum[i][0] = hn::MulAdd(x, b0, sum[i][0]);
        sum[i][1] = hn::MulAdd(x, b1, sum[i][1]);
      }
      HWY_UNROLL(16)
      for (int i = 0; i < kPointers; ++i) p[i] += g.a_k;
    }
  }
  HWY_UNROLL(16)
  for (int i = 0; i < R; ++i) {
    hn::Store(sum[i][0], d, tile + i * kPanel);
    hn::Store(sum[i][1], d, tile + i * kPanel + kLanes);
  }
}

void SumRows(const Gemm& g, std::ptrdiff_t rows, const float* a, const float* b, float* tile) {
  switch (rows) {
    case 1:
      return SumTile<1>(g, a, b, tile);
    case 2:
      return SumTile<2>(g, a, b, tile);
    case 3:
      return SumTile<3>(g, a, b, tile);
    case 4:
      return SumTile<4>(g, a, b, tile);
    case 5:
      return SumTile<5>(g, a, b, tile);
    case 6:
      return SumTile<6>(g, a, b, tile);
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
    case 7:
      return SumTile<7>(g, a, b, tile);
    case 8:
      return SumTile<8>(g, a, b, tile);
    case 9:
      return SumTile<9>(g, a, b, tile);
    case 10:
      return SumTile<10>(g, a, b, tile);
    case 11:
      return SumTile<11>(g, a, b, tile);
    case 12:
      return SumTile<12>(g, a, b, tile);
#endif
    default:
      return;
  }
}

void Multiply(const Gemm& g) {
  const std::ptrdiff_t k = g.segments * g.segment_length;
  // Equal tiles rather than full ones and a small rest: small tiles are slow.
  const std::ptrdiff_t tiles = (g.rows + kRows - 1) / kRows;
  HWY_ALIGN float tile[kRows * kPanel];
  for (std::ptrdiff_t column = 0; column < g.columns; column += kPanel) {
    const float* b = g.b + column * k;
    for (std::ptrdiff_t t = 0; t < tiles; ++t) {
      const std::ptrdiff_t row = g.rows * t / tiles;
      const std::ptrdiff_t end = g.rows * (t + 1) / tiles;
      SumRows(g, end - row, g.a + row * g.a_row, b, tile);
      StoreTile(g, {row, end - row, column}, tile);
    }
  }
}

void PackPanels(const Packing& p) {
  const D d;
  for (std::ptrdiff_t column = 0; column < p.columns; column += kPanel) {
    float* panel = p.packed + column / kPanel * p.panel_stride;
    const float* from = p.source + column * p.column_stride;
    const std::ptrdiff_t columns = std::min(kPanel, p.columns - column);
    if (columns == kPanel && p.column_stride == 1) {
      for (std::ptrdiff_t k = 0; k < p.k; ++k) {
        hn::StoreU(hn::LoadU(d, from + k * p.k_stride), d, panel + k * kPanel);
        hn::StoreU(hn::LoadU(d, from + k * p.k_stride + kLanes), d, panel + k * kPanel + kLanes);
      }
      continue;
    }
    for (std::ptrdiff_t k = 0; k < p.k; ++k) {
      for (std::ptrdiff_t n = 0; n < kPanel; ++n)
        panel[k * kPanel + n] = n < columns ? from[k * p.k_stride + n * p.column_stride] : 0.0f;
    }
  }
}

void ColumnSums(const float* packed, std::ptrdiff_t k, std::ptrdiff_t columns, bool accumulate,
                float* out) {
  const D d;
  HWY_ALIGN float sums[kPanel];
  for (std::ptrdiff_t column = 0; column < columns; column += kPanel) {
    V sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    for (std::ptrdiff_t i = 0; i < k; ++i) {
      sum0 = hn::Add(sum0, hn::LoadU(d, packed + i * kPanel));
      sum1 = hn::Add(sum1, hn::LoadU(d, packed + i * kPanel + kLanes));
    }
    packed += k * kPanel;
    hn::Store(sum0, d, sums);
    hn::Store(sum1, d, sums + kLanes);
    for (std::ptrdiff_t n = 0; n < std::min(kPanel, columns - column); ++n)
      out[column + n] = accumulate ? out[column + n] + sums[n] : sums[n];
  }
}

GemmKernels GemmEntries() {
  return {kPanel, &Multiply, &PackPanels, &ColumnSums};
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(GemmEntries);
GemmKernels gemm_kernels(SimdTarget target) {
  return entry_for(target, HWY_DISPATCH_TABLE(GemmEntries))();
}
}  // namespace towers::cpu
#endif
