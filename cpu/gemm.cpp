#include "cpu/gemm.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cpu/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gemm.cpp"
#include <hwy/cache_control.h>
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

// Values of B that stay in the first-level cache while all rows of C pass over them.
constexpr std::ptrdiff_t kBlockValues = 20 * 1024 / sizeof(float);

// Part of the sums of one tile of C: some rows, one panel, some segments or a part of one.
struct TileSum {
  const float* a;
  std::ptrdiff_t a_row, a_segment, a_k, segments, segment_length;
  const float* b;
  float* c;
  std::ptrdiff_t c_row;
  const float* start;  // null: zero
  std::ptrdiff_t start_row;
  float start_scale;
  bool relu;
};

template <int R>
HWY_NOINLINE void SumTile(const TileSum& t) {
  const D d;
  V sum[R][2];
  if (t.start == nullptr) {
    HWY_UNROLL(16)
    for (int i = 0; i < R; ++i) sum[i][0] = sum[i][1] = hn::Zero(d);
  } else {
    const V scale = hn::Set(d, t.start_scale);
    HWY_UNROLL(16)
    for (int i = 0; i < R; ++i) {
      sum[i][0] = hn::Mul(scale, hn::LoadU(d, t.start + i * t.start_row));
      sum[i][1] = hn::Mul(scale, hn::LoadU(d, t.start + i * t.start_row + kLanes));
    }
  }

  // Every third row has a pointer of its own, the others are one or two strides away: few enough
  // addresses for the registers.
  constexpr int kPointers = (R + 2) / 3;
  const std::ptrdiff_t stride = t.a_row;
  const float* b = t.b;
  for (std::ptrdiff_t s = 0; s < t.segments; ++s) {
    const float* p[kPointers];
    HWY_UNROLL(16)
    for (int i = 0; i < kPointers; ++i) p[i] = t.a + s * t.a_segment + 3 * i * stride;
    for (std::ptrdiff_t k = 0; k < t.segment_length; ++k) {
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
      for (int i = 0; i < kPointers; ++i) p[i] += t.a_k;
    }
  }

  if (t.relu) {
    const V zero = hn::Zero(d);
    HWY_UNROLL(16)
    for (int i = 0; i < R; ++i) {
      // Not Max, which loses NaN on some targets.
      sum[i][0] = hn::IfThenZeroElse(hn::Lt(sum[i][0], zero), sum[i][0]);
      sum[i][1] = hn::IfThenZeroElse(hn::Lt(sum[i][1], zero), sum[i][1]);
    }
  }
  HWY_UNROLL(16)
  for (int i = 0; i < R; ++i) {
    hn::StoreU(sum[i][0], d, t.c + i * t.c_row);
    hn::StoreU(sum[i][1], d, t.c + i * t.c_row + kLanes);
  }
}

void SumRows(std::ptrdiff_t rows, const TileSum& tile) {
  switch (rows) {
    case 1:
      return SumTile<1>(tile);
    case 2:
      return SumTile<2>(tile);
    case 3:
      return SumTile<3>(tile);
    case 4:
      return SumTile<4>(tile);
    case 5:
      return SumTile<5>(tile);
    case 6:
      return SumTile<6>(tile);
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64
    case 7:
      return SumTile<7>(tile);
    case 8:
      return SumTile<8>(tile);
    case 9:
      return SumTile<9>(tile);
    case 10:
      return SumTile<10>(tile);
    case 11:
      return SumTile<11>(tile);
    case 12:
      return SumTile<12>(tile);
#endif
    default:
      return;
  }
}

// As SumRows for a panel of which C has fewer columns: through memory of a whole panel's width.
void SumNarrowRows(std::ptrdiff_t rows, std::ptrdiff_t columns, TileSum tile) {
  HWY_ALIGN float start[kRows * kPanel] = {};
  HWY_ALIGN float sums[kRows * kPanel];
  if (tile.start != nullptr) {
    for (std::ptrdiff_t i = 0; i < rows; ++i)
      std::copy_n(tile.start + i * tile.start_row, columns, start + i * kPanel);
    tile.start = start;
    tile.start_row = kPanel;
  }
  float* c = std::exchange(tile.c, sums);
  const std::ptrdiff_t c_row = std::exchange(tile.c_row, kPanel);
  SumRows(rows, tile);
  for (std::ptrdiff_t i = 0; i < rows; ++i) std::copy_n(sums + i * kPanel, columns, c + i * c_row);
}

// What the tile `down` rows further, of `rows` rows, starts from and is written to: where C is
// large, that comes from far away.
HWY_INLINE void PrefetchTile(const TileSum& tile, std::ptrdiff_t down, std::ptrdiff_t rows) {
  const auto row_of = [](const float* values) {
    hwy::Prefetch(values);
    hwy::Prefetch(values + kPanel - 1);
  };
  for (std::ptrdiff_t i = down; i < down + rows; ++i) {
    row_of(tile.c + i * tile.c_row);
    if (tile.start != nullptr && tile.start != tile.c && tile.start_row != 0)
      row_of(tile.start + i * tile.start_row);
  }
}

// One of `parts` equal shares of what will be packed.
void PrefetchSource(const Packing& p, std::ptrdiff_t part, std::ptrdiff_t parts) {
  const bool rows = p.column_stride == 1;
  const std::ptrdiff_t lines = rows ? p.k : p.columns, values = rows ? p.columns : p.k;
  const std::ptrdiff_t stride = rows ? p.k_stride : p.column_stride;
  for (std::ptrdiff_t i = lines * part / parts; i < lines * (part + 1) / parts; ++i) {
    for (std::ptrdiff_t j = 0; j < values; j += kLine) hwy::Prefetch(p.source + i * stride + j);
    hwy::Prefetch(p.source + i * stride + values - 1);
  }
}

// All rows of one panel's columns, over a block of k that begins at `tile.b`, while the block to be
// packed next comes nearer.
void SumBlock(const Gemm& g, std::ptrdiff_t column, std::ptrdiff_t a_offset, bool first,
              TileSum tile, const Packing& next) {
  const std::ptrdiff_t columns = std::min(kPanel, g.columns - column);
  // Equal tiles rather than full ones and a small rest: small tiles are slow.
  const std::ptrdiff_t tiles = (g.rows + kRows - 1) / kRows;
  for (std::ptrdiff_t group = 0; group < g.groups; ++group) {
    for (std::ptrdiff_t t = 0; t < tiles; ++t) {
      const std::ptrdiff_t row = g.rows * t / tiles;
      const std::ptrdiff_t rows = g.rows * (t + 1) / tiles - row;
      tile.a = g.a + group * g.a_group + row * g.a_row + a_offset;
      tile.c = g.c + group * g.c_group + row * g.c_row + column;
      if (!first)
        tile.start = tile.c;
      else if (g.start != nullptr)
        tile.start = g.start + row * g.start_row + column;
      PrefetchTile(tile, rows, std::min(rows, g.rows - row - rows));
      PrefetchSource(next, group * tiles + t, g.groups * tiles);
      if (columns == kPanel)
        SumRows(rows, tile);
      else
        SumNarrowRows(rows, columns, tile);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Of a whole panel whose source has each column's values side by side: transposes blocks of 4 x 4.
HWY_INLINE void PackColumns(const float* from, std::ptrdiff_t column_stride,
                            std::ptrdiff_t k_values, float* panel) {
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<std::uint64_t, decltype(d)> pairs;
  const std::ptrdiff_t whole = k_values / 4 * 4;
  for (std::ptrdiff_t k = 0; k < whole; k += 4) {
    for (std::ptrdiff_t n = 0; n < kPanel; n += 4) {
      const float* at = from + n * column_stride + k;
      const auto r0 = hn::LoadU(d, at);
      const auto r1 = hn::LoadU(d, at + column_stride);
      const auto r2 = hn::LoadU(d, at + 2 * column_stride);
      const auto r3 = hn::LoadU(d, at + 3 * column_stride);
      const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
      float* to = panel + k * kPanel + n;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + kPanel);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * kPanel);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * kPanel);
    }
  }
  for (std::ptrdiff_t k = whole; k < k_values; ++k)
    for (std::ptrdiff_t n = 0; n < kPanel; ++n) panel[k * kPanel + n] = from[n * column_stride + k];
}
#endif

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
#if HWY_TARGET != HWY_SCALAR
    if (columns == kPanel && p.k_stride == 1) {
      PackColumns(from, p.column_stride, p.k, panel);
      continue;
    }
#endif
    for (std::ptrdiff_t k = 0; k < p.k; ++k) {
      for (std::ptrdiff_t n = 0; n < kPanel; ++n)
        panel[k * kPanel + n] = n < columns ? from[k * p.k_stride + n * p.column_stride] : 0.0f;
    }
  }
}

void Multiply(const Gemm& g) {
  constexpr std::ptrdiff_t kBlock = kBlockValues / kPanel;
  const std::ptrdiff_t k_values = g.segments * g.segment_length;
  // A block is some whole segments, or an equal part of one.
  const std::ptrdiff_t parts =
      std::max<std::ptrdiff_t>(1, (g.segment_length + kBlock - 1) / kBlock);
  const std::ptrdiff_t together =
      parts > 1
          ? 1
          : std::max<std::ptrdiff_t>(1, kBlock / std::max<std::ptrdiff_t>(1, g.segment_length));
  TileSum tile{};
  tile.a_row = g.a_row;
  tile.a_segment = g.a_segment;
  tile.a_k = g.a_k;
  tile.c_row = g.c_row;
  HWY_ALIGN float packed[kBlock * kPanel];
  for (std::ptrdiff_t s = 0; s < g.segments; s += together) {
    tile.segments = std::min(together, g.segments - s);
    for (std::ptrdiff_t part = 0; part < parts; ++part) {
      const std::ptrdiff_t in_segment = g.segment_length * part / parts;
      tile.segment_length = g.segment_length * (part + 1) / parts - in_segment;
      const std::ptrdiff_t k = s * g.segment_length + in_segment;
      const bool first = k == 0;
      const bool last = s + together >= g.segments && part + 1 == parts;
      tile.start_row = first ? g.start_row : g.c_row;
      tile.start_scale = first ? g.start_scale : 1.0f;
      tile.relu = last && g.relu;
      const std::ptrdiff_t length = tile.segments * tile.segment_length;
      const auto source = [&](std::ptrdiff_t at_k, std::ptrdiff_t column) {
        return Packing{g.b + at_k * g.b_k + column * g.b_column, g.b_k,  g.b_column, length,
                       std::min(kPanel, g.columns - column),     packed, 0};
      };
      for (std::ptrdiff_t column = 0; column < g.columns; column += kPanel) {
        Packing next;
        if (g.b_k == 0) {
          tile.b = g.b + column * k_values + k * kPanel;
        } else {
          tile.b = packed;
          PackPanels(source(k, column));
          if (column + kPanel < g.columns)
            next = source(k, column + kPanel);
          else if (!last)
            next = source(k + length, 0);
        }
        tile.start = nullptr;
        SumBlock(g, column, s * g.a_segment + in_segment * g.a_k, first, tile, next);
      }
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
  return {HWY_TARGET, kPanel, &Multiply, &PackPanels, &ColumnSums};
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
