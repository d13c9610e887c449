// One tile's transforms, for one vector of channels. Included by files of kernels, once per vector
// target.

#if defined(CPU_WINOGRAD_TRANSFORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CPU_WINOGRAD_TRANSFORMS_INL_H_
#undef CPU_WINOGRAD_TRANSFORMS_INL_H_
#else
#define CPU_WINOGRAD_TRANSFORMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "cpu/winograd.h"
#include "cpu/winograd_matrices.h"

HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr std::ptrdiff_t kLanes = static_cast<std::ptrdiff_t>(hn::MaxLanes(D()));

// The five matrices of F(m, r), and which of their sides belongs to the points.
template <class W>
struct MatricesOf {
  static constexpr auto kImage = W::input();
  static constexpr auto kWeights = W::kernel();
  static constexpr auto kSpread = transposed(W::output());
  static constexpr auto kBack = folded(W::output());
  static constexpr auto kGather = folded(transposed(W::kernel()));
};

// sum + m[row][k] * x[k] + m[row][k + step] * x[k + step] + ...; factors of 0 and 1 cost nothing.
template <const auto& m, int row, int k, int step, class T>
HWY_INLINE T AddTerms(T sum, const T* x) {
  if constexpr (k < m.kColumns) {
    constexpr float factor = static_cast<float>(m.at[row][k]);
    if constexpr (factor == 1)
      sum = hn::Add(sum, x[k]);
    else if constexpr (factor == -1)
      sum = hn::Sub(sum, x[k]);
    else if constexpr (factor != 0)
      sum = hn::MulAdd(hn::Set(hn::DFromV<T>(), factor), x[k], sum);
    return AddTerms<m, row, k + step, step>(sum, x);
  } else {
    return sum;
  }
}

// The sum alone, without a start.
template <const auto& m, int row, int k, int step, class T>
HWY_INLINE T SumOfTerms(const T* x) {
  if constexpr (k >= m.kColumns) {
    return hn::Zero(hn::DFromV<T>());
  } else if constexpr (m.at[row][k] == 0) {
    return SumOfTerms<m, row, k + step, step>(x);
  } else if constexpr (m.at[row][k] == 1) {
    return AddTerms<m, row, k + step, step>(x[k], x);
  } else {
    const T first = hn::Mul(hn::Set(hn::DFromV<T>(), static_cast<float>(m.at[row][k])), x[k]);
    return AddTerms<m, row, k + step, step>(first, x);
  }
}

template <const auto& m, int row, class T>
HWY_INLINE void MultiplyPair(const T* x, T* y) {
  const T even = SumOfTerms<m, row, 0, 2>(x), odd = SumOfTerms<m, row, 1, 2>(x);
  y[row] = hn::Add(even, odd);
  y[row + 1] = hn::Sub(even, odd);
}

// y = m * x for a matrix whose rows belong to points.
template <const auto& m, class T, int... pair>
HWY_INLINE void MultiplyToPoints(const T* x, T* y, std::integer_sequence<int, pair...>) {
  constexpr int kLast = m.kRows - 1;
  y[0] = SumOfTerms<m, 0, 0, 1>(x);
  (MultiplyPair<m, 2 * pair + 1>(x, y), ...);
  y[kLast] = SumOfTerms<m, kLast, 0, 1>(x);
}

template <int pair, class T>
HWY_INLINE void SumAndDifference(const T* x, T* folded) {
  folded[2 * pair + 1] = hn::Add(x[2 * pair + 1], x[2 * pair + 2]);
  folded[2 * pair + 2] = hn::Sub(x[2 * pair + 1], x[2 * pair + 2]);
}

// y = m * x for a folded matrix: one whose columns belong to points.
template <const auto& m, class T, int... pair, int... row>
HWY_INLINE void MultiplyFromPoints(const T* x, T* y, std::integer_sequence<int, pair...>,
                                   std::integer_sequence<int, row...>) {
  T folded[m.kColumns];
  folded[0] = x[0];
  folded[m.kColumns - 1] = x[m.kColumns - 1];
  (SumAndDifference<pair>(x, folded), ...);
  ((y[row] = SumOfTerms<m, row, 0, 1>(folded)), ...);
}

template <const auto& m, class T>
HWY_INLINE void Multiply(const T* x, T* y) {
  constexpr int kPairs = (std::max(m.kRows, m.kColumns) - 2) / 2;
  if constexpr (m.kRows >= m.kColumns)
    MultiplyToPoints<m>(x, y, std::make_integer_sequence<int, kPairs>());
  else
    MultiplyFromPoints<m>(x, y, std::make_integer_sequence<int, kPairs>(),
                          std::make_integer_sequence<int, m.kRows>());
}

template <int... i, class From>
HWY_INLINE void LoadColumn(const From& from, int column, V* x, std::integer_sequence<int, i...>) {
  ((x[i] = from.load(i, column)), ...);
}

template <int... j, class To>
HWY_INLINE void StoreRow(const To& to, int row, const V* y, std::integer_sequence<int, j...>) {
  (to.store(row, j, y[j]), ...);
}

// to = m * from * transposed m, for one vector of channels.
template <const auto& m, class From, class To>
HWY_INLINE void Transform(const From& from, const To& to) {
  V half[m.kRows * m.kColumns];
  for (int column = 0; column < m.kColumns; ++column) {
    V x[m.kColumns], y[m.kRows];
    LoadColumn(from, column, x, std::make_integer_sequence<int, m.kColumns>());
    Multiply<m>(x, y);
    HWY_UNROLL(8)
    for (int row = 0; row < m.kRows; ++row) half[row * m.kColumns + column] = y[row];
  }
  for (int row = 0; row < m.kRows; ++row) {
    V y[m.kRows];
    Multiply<m>(half + row * m.kColumns, y);
    StoreRow(to, row, y, std::make_integer_sequence<int, m.kRows>());
  }
}

// One tile's vector of channels among transformed values.
template <int n>
struct PositionsOfTile {
  float* data;
  std::ptrdiff_t position;

  PositionsOfTile(const Positions& p, std::ptrdiff_t tile, std::ptrdiff_t c)
      : data(p.data + tile * p.tile + c / p.panel * p.panel_stride + c % p.panel),
        position(p.position) {}
  HWY_INLINE V load(int i, int j) const { return hn::LoadU(D(), data + (i * n + j) * position); }
  HWY_INLINE void store(int i, int j, V v) const {
    hn::StoreU(v, D(), data + (i * n + j) * position);
  }
};

// A vector of channels: all lanes, or the first `count` ones of the last vector. Highway's masks
// would do for the latter, but on many targets they read the memory of all lanes.
template <bool whole>
struct Lanes {
  std::ptrdiff_t count;

  HWY_INLINE V load(const float* from) const {
    if constexpr (whole) return hn::LoadU(D(), from);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    return hn::MaskedLoad(hn::FirstN(D(), static_cast<std::size_t>(count)), D(), from);
#else
    HWY_ALIGN float lanes[kLanes] = {};
    std::copy_n(from, count, lanes);
    return hn::Load(D(), lanes);
#endif
  }
  HWY_INLINE void store(V v, float* to) const {
    if constexpr (whole) {
      hn::StoreU(v, D(), to);
    } else {
      HWY_ALIGN float lanes[kLanes];
      hn::Store(v, D(), lanes);
      std::copy_n(lanes, count, to);
    }
  }
};

// Pixels of an image, or weights at the kernel's positions.
template <bool whole>
struct Pixels {
  Lanes<whole> lanes;
  const float* data;
  std::ptrdiff_t row, pixel;

  HWY_INLINE V load(int i, int j) const { return lanes.load(data + i * row + j * pixel); }
};

template <bool whole>
struct WritablePixels {
  Lanes<whole> lanes;
  float* data;
  std::ptrdiff_t row, pixel;

  HWY_INLINE void store(int i, int j, V v) const { lanes.store(v, data + i * row + j * pixel); }
};

// Output pixels, as far as the tile lies within the image.
template <bool whole, bool relu, bool gated>
struct OutputPixels {
  Lanes<whole> lanes;
  float* data;
  std::ptrdiff_t row, pixel;
  int rows, columns;
  V bias;
  const float* gate;
  std::ptrdiff_t gate_row, gate_pixel;

  HWY_INLINE void store(int i, int j, V v) const {
    if (i >= rows || j >= columns) return;
    const V zero = hn::Zero(D());
    v = hn::Add(v, bias);
    // Not Max, which loses NaN on some targets.
    if constexpr (relu) v = hn::IfThenZeroElse(hn::Lt(v, zero), v);
    if constexpr (gated)
      v = hn::IfThenZeroElse(hn::Le(lanes.load(gate + i * gate_row + j * gate_pixel), zero), v);
    lanes.store(v, data + i * row + j * pixel);
  }
};

// call.run<whole>(c, count) for each vector of channels, of which `count` are there.
template <class Call>
HWY_INLINE void ForChannels(std::ptrdiff_t channels, const Call& call) {
  std::ptrdiff_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) call.template run<true>(c, kLanes);
  if (c < channels) call.template run<false>(c, channels - c);
}

template <const auto& m>
struct PixelsToPositions {
  const float* data;
  std::ptrdiff_t row, pixel;
  const Positions& out;
  std::ptrdiff_t tile;

  template <bool whole>
  HWY_INLINE void run(std::ptrdiff_t c, std::ptrdiff_t count) const {
    Transform<m>(Pixels<whole>{Lanes<whole>{count}, data + c, row, pixel},
                 PositionsOfTile<m.kRows>(out, tile, c));
  }
};

template <const auto& m>
struct PositionsToPixels {
  const Positions& in;
  std::ptrdiff_t tile;
  float* data;
  std::ptrdiff_t row, pixel;

  template <bool whole>
  HWY_INLINE void run(std::ptrdiff_t c, std::ptrdiff_t count) const {
    Transform<m>(PositionsOfTile<m.kColumns>(in, tile, c),
                 WritablePixels<whole>{Lanes<whole>{count}, data + c, row, pixel});
  }
};

template <const auto& m, bool relu, bool gated>
struct PositionsToOutput {
  const Positions& in;
  std::ptrdiff_t tile;
  View out;
  const Finish& finish;
  ConstView gate;
  int rows, columns;

  template <bool whole>
  HWY_INLINE void run(std::ptrdiff_t c, std::ptrdiff_t count) const {
    const V bias = finish.biases == nullptr ? hn::Zero(D()) : hn::LoadU(D(), finish.biases + c);
    Transform<m>(PositionsOfTile<m.kColumns>(in, tile, c),
                 OutputPixels<whole, relu, gated>{
                     Lanes<whole>{count}, out.data + c, out.row, out.pixel, rows, columns, bias,
                     gated ? gate.data + c : nullptr, gate.row, gate.pixel});
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#endif
