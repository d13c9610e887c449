#include "cpu/max_pool.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/max_pool.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kNoWinner = 255;
constexpr int kWindow = kLargestPoolSize * kLargestPoolSize;

struct Tap {
  const float* values;
  const std::uint8_t* winner;  // backward: of the window that this tap belongs to
  int place;                   // in the window
};

// `sum` is of the whole window: comparing finds the largest number, but not NaN, which is to stay.
// (Infinities of both signs make NaN too, and are as little finite.)
template <class D>
HWY_INLINE void StoreMaximum(D d, hn::Vec<D> best, hn::Vec<D> sum,
                             hn::Vec<hn::RebindToSigned<D>> place, std::ptrdiff_t c, float* out,
                             std::uint8_t* winner, bool relu_input) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint8_t, D> du8;
  best = hn::IfThenElse(hn::Eq(sum, sum), best, sum);
  hn::StoreU(best, d, out + c);
  if (winner == nullptr) return;
  if (relu_input) {
    const auto stopped = hn::RebindMask(di, hn::Le(best, hn::Zero(d)));
    place = hn::IfThenElse(stopped, hn::Set(di, kNoWinner), place);
  }
  hn::StoreU(hn::DemoteTo(du8, place), du8, winner + c);
}

template <class D>
void MaximumOf(D d, const Tap* taps, int count, std::ptrdiff_t c, float* out, std::uint8_t* winner,
               bool relu_input) {
  const hn::RebindToSigned<D> di;
  auto best = hn::LoadU(d, taps[0].values + c);
  auto sum = best;
  auto place = hn::Set(di, taps[0].place);
  for (int t = 1; t < count; ++t) {
    const auto x = hn::LoadU(d, taps[t].values + c);
    sum = hn::Add(sum, x);
    const auto better = hn::Gt(x, best);
    best = hn::IfThenElse(better, x, best);
    place = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, taps[t].place), place);
  }
  StoreMaximum(d, best, sum, place, c, out, winner, relu_input);
}

template <class D>
void GradientOf(D d, const Tap* taps, int count, std::ptrdiff_t c, float* d_in) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint8_t, D> du8;
  auto sum = hn::Zero(d);
  for (int t = 0; t < count; ++t) {
    const auto place = hn::PromoteTo(di, hn::LoadU(du8, taps[t].winner + c));
    const auto won = hn::RebindMask(d, hn::Eq(place, hn::Set(di, taps[t].place)));
    sum = hn::Add(sum, hn::IfThenElseZero(won, hn::LoadU(d, taps[t].values + c)));
  }
  hn::StoreU(sum, d, d_in + c);
}

// Pools of 3 x 3 at stride 2 over images of even size, as nets have them: the padding is one row
// and one column, at the end. What is general below is unrolled here.
bool IsThreeByTwo(const PoolShape& s) {
  return s.size == 3 && s.stride == 2 && s.top == 0 && s.left == 0 && s.input.height % 2 == 0 &&
         s.input.width % 2 == 0;
}

// The first `rows` x `columns` values of a window of 3 x 3.
template <int rows, int columns>
struct ThreeByTwoMaximum {
  const float* in;
  std::ptrdiff_t row, pixel;
  float* out;
  std::uint8_t* winner;
  bool relu_input;

  template <class D>
  HWY_INLINE void operator()(D d, std::ptrdiff_t c) const {
    const hn::RebindToSigned<D> di;
    auto best = hn::LoadU(d, in + c);
    auto sum = best;
    auto place = hn::Zero(di);
    HWY_UNROLL(9)
    for (int i = 1; i < rows * columns; ++i) {
      const int ky = i / columns, kx = i % columns;
      const auto x = hn::LoadU(d, in + ky * row + kx * pixel + c);
      sum = hn::Add(sum, x);
      const auto better = hn::Gt(x, best);
      best = hn::IfThenElse(better, x, best);
      place = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, ky * 3 + kx), place);
    }
    StoreMaximum(d, best, sum, place, c, out, winner, relu_input);
  }
};

// The gradients of 2 x 2 inputs, from the window that begins there and, where `above` and `before`
// say that there are any, those that end there.
template <bool above, bool before>
struct ThreeByTwoGradient {
  const float* d_out;
  std::ptrdiff_t out_row, out_pixel;
  const std::uint8_t* winner;
  std::ptrdiff_t winner_row, winner_pixel;
  float* d_in;
  std::ptrdiff_t in_row, in_pixel;

  // What the window `up` rows above and `back` columns before gives to its value at `place`.
  template <int up, int back, int place, class D>
  HWY_INLINE hn::Vec<D> share(D d, std::ptrdiff_t c) const {
    if constexpr ((up > 0 && !above) || (back > 0 && !before)) {
      return hn::Zero(d);
    } else {
      const hn::RebindToSigned<D> di;
      const hn::Rebind<std::uint8_t, D> du8;
      const auto won =
          hn::PromoteTo(di, hn::LoadU(du8, winner - up * winner_row - back * winner_pixel + c));
      const auto gradient = hn::LoadU(d, d_out - up * out_row - back * out_pixel + c);
      return hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(won, hn::Set(di, place))), gradient);
    }
  }

  template <class D>
  HWY_INLINE void operator()(D d, std::ptrdiff_t c) const {
    float* to = d_in + c;
    hn::StoreU(hn::Add(hn::Add(share<1, 1, 8>(d, c), share<1, 0, 6>(d, c)),
                       hn::Add(share<0, 1, 2>(d, c), share<0, 0, 0>(d, c))),
               d, to);
    hn::StoreU(hn::Add(share<1, 0, 7>(d, c), share<0, 0, 1>(d, c)), d, to + in_pixel);
    to += in_row;
    hn::StoreU(hn::Add(share<0, 1, 5>(d, c), share<0, 0, 3>(d, c)), d, to);
    hn::StoreU(share<0, 0, 4>(d, c), d, to + in_pixel);
  }
};

template <class Call>
HWY_INLINE void ForChannels(std::ptrdiff_t channels, const Call& call) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::ptrdiff_t lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  std::ptrdiff_t c = 0;
  for (; c + lanes <= channels; c += lanes) call(d, c);
  for (; c < channels; ++c) call(one, c);
}

template <int rows, int columns>
HWY_INLINE void MaximumAt(const PoolShape& s, ConstView in, float* out, std::uint8_t* winner,
                          bool relu_input) {
  ForChannels(s.input.channels,
              ThreeByTwoMaximum<rows, columns>{in.data, in.row, in.pixel, out, winner, relu_input});
}

void ThreeByTwoForward(const PoolShape& s, ConstView in, View out, std::uint8_t* winner,
                       bool relu_input) {
  for (int y = 0; y < s.output.height; ++y) {
    for (int x = 0; x < s.output.width; ++x) {
      const ConstView window = in.from(2 * y, 2 * x);
      const bool last_row = y + 1 == s.output.height, last_column = x + 1 == s.output.width;
      if (last_row && last_column)
        MaximumAt<2, 2>(s, window, out.at(y, x), winner, relu_input);
      else if (last_row)
        MaximumAt<2, 3>(s, window, out.at(y, x), winner, relu_input);
      else if (last_column)
        MaximumAt<3, 2>(s, window, out.at(y, x), winner, relu_input);
      else
        MaximumAt<3, 3>(s, window, out.at(y, x), winner, relu_input);
      if (winner != nullptr) winner += s.input.channels;
    }
  }
}

template <bool above, bool before>
HWY_INLINE void GradientAt(const PoolShape& s, ConstView d_out, const std::uint8_t* winner,
                           View d_in) {
  const std::ptrdiff_t channels = s.input.channels;
  ForChannels(channels, ThreeByTwoGradient<above, before>{
                            d_out.data, d_out.row, d_out.pixel, winner, s.output.width * channels,
                            channels, d_in.data, d_in.row, d_in.pixel});
}

void ThreeByTwoBackward(const PoolShape& s, ConstView d_out, const std::uint8_t* winner,
                        View d_in) {
  for (int y = 0; y < s.output.height; ++y) {
    for (int x = 0; x < s.output.width; ++x) {
      const ConstView from = d_out.from(y, x);
      const View to = d_in.from(2 * y, 2 * x);
      if (y > 0 && x > 0)
        GradientAt<true, true>(s, from, winner, to);
      else if (y > 0)
        GradientAt<true, false>(s, from, winner, to);
      else if (x > 0)
        GradientAt<false, true>(s, from, winner, to);
      else
        GradientAt<false, false>(s, from, winner, to);
      winner += s.input.channels;
    }
  }
}

void Forward(const PoolShape& s, ConstView in, View out, std::uint8_t* winner, bool relu_input) {
  if (IsThreeByTwo(s)) return ThreeByTwoForward(s, in, out, winner, relu_input);
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::ptrdiff_t lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const std::ptrdiff_t channels = s.input.channels;
  Tap taps[kWindow];
  for (int oy = 0; oy < s.output.height; ++oy) {
    for (int ox = 0; ox < s.output.width; ++ox) {
      const int y = oy * s.stride - s.top, x = ox * s.stride - s.left;
      int count = 0;
      for (int ky = std::max(0, -y); ky < std::min(s.size, s.input.height - y); ++ky)
        for (int kx = std::max(0, -x); kx < std::min(s.size, s.input.width - x); ++kx)
          taps[count++] = {in.at(y + ky, x + kx), nullptr, ky * s.size + kx};
      float* to = out.at(oy, ox);
      std::ptrdiff_t c = 0;
      for (; c + lanes <= channels; c += lanes)
        MaximumOf(d, taps, count, c, to, winner, relu_input);
      for (; c < channels; ++c) MaximumOf(one, taps, count, c, to, winner, relu_input);
      if (winner != nullptr) winner += channels;
    }
  }
}

void Backward(const PoolShape& s, ConstView d_out, const std::uint8_t* winner, View d_in) {
  if (IsThreeByTwo(s)) return ThreeByTwoBackward(s, d_out, winner, d_in);
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::ptrdiff_t lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const std::ptrdiff_t channels = s.input.channels;
  // The first window that reaches input row or column `at` (padding included).
  const auto first = [&](int at) { return std::max(0, (at - s.size + s.stride) / s.stride); };
  Tap taps[kWindow];
  for (int y = 0; y < s.input.height; ++y) {
    const int first_y = first(y + s.top);
    const int last_y = std::min((y + s.top) / s.stride, s.output.height - 1);
    for (int x = 0; x < s.input.width; ++x) {
      const int last_x = std::min((x + s.left) / s.stride, s.output.width - 1);
      int count = 0;
      for (int oy = first_y; oy <= last_y; ++oy) {
        const int ky = y + s.top - oy * s.stride;
        for (int ox = first(x + s.left); ox <= last_x; ++ox) {
          const int kx = x + s.left - ox * s.stride;
          const std::ptrdiff_t place = (static_cast<std::ptrdiff_t>(oy) * s.output.width + ox);
          taps[count++] = {d_out.at(oy, ox), winner + place * channels, ky * s.size + kx};
        }
      }
      float* to = d_in.at(y, x);
      std::ptrdiff_t c = 0;
      for (; c + lanes <= channels; c += lanes) GradientOf(d, taps, count, c, to);
      for (; c < channels; ++c) GradientOf(one, taps, count, c, to);
    }
  }
}

PoolKernels PoolEntries() {
  return {HWY_TARGET, &Forward, &Backward};
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(PoolEntries);
PoolKernels pool_kernels(SimdTarget target) {
  return entry_for(target, HWY_DISPATCH_TABLE(PoolEntries))();
}
}  // namespace towers::cpu
#endif
