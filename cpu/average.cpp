#include "cpu/average.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/average.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
std::size_t AverageRange(D d, std::span<const float* const> towers, std::size_t i, std::size_t end,
                         float* out) {
  const auto count = hn::Set(d, static_cast<float>(towers.size()));
  for (; i + hn::Lanes(d) <= end; i += hn::Lanes(d)) {
    auto sum = hn::LoadU(d, towers[0] + i);
    for (const float* tower : towers.subspan(1)) sum = hn::Add(sum, hn::LoadU(d, tower + i));
    hn::StoreU(hn::Div(sum, count), d, out + i);
  }
  return i;
}

void Average(std::span<const float* const> towers, std::size_t begin, std::size_t end, float* out) {
  const std::size_t rest = AverageRange(hn::ScalableTag<float>(), towers, begin, end, out);
  AverageRange(hn::CappedTag<float, 1>(), towers, rest, end, out);
}

AverageKernels AverageEntries() {
  return {HWY_TARGET, &Average};
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(AverageEntries);
AverageKernels average_kernels(SimdTarget target) {
  return entry_for(target, HWY_DISPATCH_TABLE(AverageEntries))();
}
}  // namespace towers::cpu
#endif
