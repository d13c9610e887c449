#include "cpu/update.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Whole = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

constexpr std::int32_t kMagnitude = 0x7fffffff;
constexpr std::int32_t kLargestFinite = 0x7f7fffff;

// The larger magnitude as an integer: above kLargestFinite for infinities and NaN.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> LargerOf(hn::Vec<hn::RebindToSigned<D>> largest,
                                                   hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  return hn::Max(largest, hn::And(hn::BitCast(di, x), hn::Set(di, kMagnitude)));
}

template <class DI>
HWY_INLINE bool NotFinite(DI di, hn::Vec<DI> largest) {
  return !hn::AllFalse(di, hn::Gt(largest, hn::Set(di, kLargestFinite)));
}

template <class D>
NonFiniteSeen UpdateRange(D d, std::size_t begin, std::size_t end, float learning_rate,
                          float decay_rest, const float* gradient, float* value, float* average) {
  const auto rate = hn::Set(d, learning_rate);
  const auto rest = hn::Set(d, decay_rest);
  const hn::RebindToSigned<D> di;
  auto gradients = hn::Zero(di), olds = gradients, news = gradients, averages = gradients;
  for (std::size_t i = begin; i < end; i += hn::Lanes(d)) {
    const auto g = hn::LoadU(d, gradient + i);
    const auto old = hn::LoadU(d, value + i);
    const auto updated = hn::Sub(old, hn::Mul(rate, g));
    const auto mean = hn::LoadU(d, average + i);
    const auto new_mean = hn::Sub(mean, hn::Mul(rest, hn::Sub(mean, updated)));
    hn::StoreU(updated, d, value + i);
    hn::StoreU(new_mean, d, average + i);
    gradients = LargerOf<D>(gradients, g);
    olds = LargerOf<D>(olds, old);
    news = LargerOf<D>(news, updated);
    averages = LargerOf<D>(averages, new_mean);
  }
  return {NotFinite(di, gradients), NotFinite(di, olds), NotFinite(di, news),
          NotFinite(di, averages)};
}

NonFiniteSeen Update(std::size_t size, float learning_rate, float decay_rest, const float* gradient,
                     float* value, float* average) {
  const std::size_t lanes = hn::Lanes(Whole()), whole = size / lanes * lanes;
  const NonFiniteSeen a =
      UpdateRange(Whole(), 0, whole, learning_rate, decay_rest, gradient, value, average);
  const NonFiniteSeen b =
      UpdateRange(One(), whole, size, learning_rate, decay_rest, gradient, value, average);
  return {a.gradient || b.gradient, a.old_value || b.old_value, a.new_value || b.new_value,
          a.average || b.average};
}

template <class D>
void SumPartsRange(D d, std::size_t begin, std::size_t end, const float* parts, std::size_t stride,
                   int count, const float* scaled, float scale, float* out) {
  for (std::size_t i = begin; i < end; i += hn::Lanes(d)) {
    auto sum = hn::LoadU(d, parts + i);
    for (int part = 1; part < count; ++part)
      sum = hn::Add(sum, hn::LoadU(d, parts + static_cast<std::size_t>(part) * stride + i));
    if (scaled != nullptr) sum = hn::Add(sum, hn::Mul(hn::Set(d, scale), hn::LoadU(d, scaled + i)));
    hn::StoreU(sum, d, out + i);
  }
}

void SumParts(std::size_t size, const float* parts, std::size_t stride, int count,
              const float* scaled, float scale, float* out) {
  const std::size_t lanes = hn::Lanes(Whole()), whole = size / lanes * lanes;
  SumPartsRange(Whole(), 0, whole, parts, stride, count, scaled, scale, out);
  SumPartsRange(One(), whole, size, parts, stride, count, scaled, scale, out);
}

double SumOfSquares(std::size_t size, const float* values) {
  const Whole d;
  const std::size_t lanes = hn::Lanes(d), whole = size / lanes * lanes;
  constexpr std::size_t kRun = 64;  // vectors
  HWY_ALIGN float lane[hn::MaxLanes(d)];
  double sum = 0;
  for (std::size_t i = 0; i < whole;) {
    const std::size_t end = std::min(whole, i + kRun * lanes);
    auto run = hn::Zero(d);
    for (; i < end; i += lanes) {
      const auto x = hn::LoadU(d, values + i);
      run = hn::MulAdd(x, x, run);
    }
    hn::Store(run, d, lane);
    for (const float x : lane) sum += static_cast<double>(x);
  }
  for (std::size_t i = whole; i < size; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

template <class D>
void ReluBackwardRange(D d, std::size_t begin, std::size_t end, const float* x, float* d_x) {
  for (std::size_t i = begin; i < end; i += hn::Lanes(d)) {
    const auto off = hn::Le(hn::LoadU(d, x + i), hn::Zero(d));
    hn::StoreU(hn::IfThenZeroElse(off, hn::LoadU(d, d_x + i)), d, d_x + i);
  }
}

void ReluBackward(std::size_t size, const float* x, float* d_x) {
  const std::size_t lanes = hn::Lanes(Whole()), whole = size / lanes * lanes;
  ReluBackwardRange(Whole(), 0, whole, x, d_x);
  ReluBackwardRange(One(), whole, size, x, d_x);
}

UpdateKernels UpdateEntries() {
  return {HWY_TARGET, &Update, &SumParts, &SumOfSquares, &ReluBackward};
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(UpdateEntries);
UpdateKernels update_kernels(SimdTarget target) {
  return entry_for(target, HWY_DISPATCH_TABLE(UpdateEntries))();
}

bool all_finite(std::size_t size, const float* values) {
  return std::all_of(values, values + size, [](float x) { return std::isfinite(x); });
}
}  // namespace towers::cpu
#endif
