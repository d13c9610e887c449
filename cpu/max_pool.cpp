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

template <class D>
void MaximumOf(D d, const Tap* taps, int count, std::ptrdiff_t c, float* out, std::uint8_t* winner,
               bool relu_input) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint8_t, D> du8;
  auto best = hn::LoadU(d, taps[0].values + c);
  auto place = hn::Set(di, taps[0].place);
  for (int t = 1; t < count; ++t) {
    const auto x = hn::LoadU(d, taps[t].values + c);
    const auto better = hn::Gt(x, best);
    best = hn::IfThenElse(better, x, best);
    place = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, taps[t].place), place);
  }
  hn::StoreU(best, d, out + c);
  if (winner == nullptr) return;
  if (relu_input) {
    const auto passes = hn::RebindMask(di, hn::Gt(best, hn::Zero(d)));
    place = hn::IfThenElse(passes, place, hn::Set(di, kNoWinner));
  }
  hn::StoreU(hn::DemoteTo(du8, place), du8, winner + c);
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

void Forward(const PoolShape& s, ConstView in, View out, std::uint8_t* winner, bool relu_input) {
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
