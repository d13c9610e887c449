#include "cpu/bf16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/bf16.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Whole = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;
template <class D>
using Bits = hn::RebindToUnsigned<D>;

// As to_bfloat16, the bits of the upper half in place.
template <class D>
HWY_INLINE hn::Vec<Bits<D>> RoundedBits(D /*d*/, hn::Vec<D> x) {
  const Bits<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(hn::Set(du, 0x7fff), odd));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
  return hn::And(chosen, hn::Set(du, 0xffff0000u));
}

template <class D>
void ConvertRange(D d, std::size_t begin, std::size_t end, const float* from, Bf16* to) {
  const hn::Rebind<std::uint16_t, D> du16;
  const hn::RebindToSigned<D> di;
  auto* bits = reinterpret_cast<std::uint16_t*>(to);
  for (std::size_t i = begin; i < end; i += hn::Lanes(d)) {
    const auto upper = hn::ShiftRight<16>(RoundedBits(d, hn::LoadU(d, from + i)));
    hn::StoreU(hn::DemoteTo(du16, hn::BitCast(di, upper)), du16, bits + i);
  }
}

template <class D>
void RoundRange(D d, std::size_t begin, std::size_t end, const float* from, float* to) {
  for (std::size_t i = begin; i < end; i += hn::Lanes(d))
    hn::StoreU(hn::BitCast(d, RoundedBits(d, hn::LoadU(d, from + i))), d, to + i);
}

template <class D>
void ReluBackwardRange(D d, std::size_t begin, std::size_t end, const Bf16* x, float* d_x) {
  const hn::Rebind<std::uint16_t, D> du16;
  const Bits<D> du;
  const auto* bits = reinterpret_cast<const std::uint16_t*>(x);
  for (std::size_t i = begin; i < end; i += hn::Lanes(d)) {
    const auto upper = hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(du16, bits + i)));
    const auto off = hn::Le(hn::BitCast(d, upper), hn::Zero(d));
    hn::StoreU(hn::IfThenZeroElse(off, hn::LoadU(d, d_x + i)), d, d_x + i);
  }
}

template <class D>
void ReluRange(D d, std::size_t begin, std::size_t end, float* x) {
  for (std::size_t i = begin; i < end; i += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, x + i);
    // Not Max, which loses NaN on some targets.
    hn::StoreU(hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value), d, x + i);
  }
}

std::size_t WholeVectors(std::size_t size) {
  return size / hn::Lanes(Whole()) * hn::Lanes(Whole());
}

void Convert(std::size_t size, const float* from, Bf16* to) {
  ConvertRange(Whole(), 0, WholeVectors(size), from, to);
  ConvertRange(One(), WholeVectors(size), size, from, to);
}

void Round(std::size_t size, const float* from, float* to) {
  RoundRange(Whole(), 0, WholeVectors(size), from, to);
  RoundRange(One(), WholeVectors(size), size, from, to);
}

void ReluBackward(std::size_t size, const Bf16* x, float* d_x) {
  ReluBackwardRange(Whole(), 0, WholeVectors(size), x, d_x);
  ReluBackwardRange(One(), WholeVectors(size), size, x, d_x);
}

void Relu(std::size_t size, float* x) {
  ReluRange(Whole(), 0, WholeVectors(size), x);
  ReluRange(One(), WholeVectors(size), size, x);
}

Bf16Kernels Bf16Entries() {
  return {HWY_TARGET, &Convert, &Round, &ReluBackward, &Relu};
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(Bf16Entries);
Bf16Kernels bf16_kernels(SimdTarget target) {
  return entry_for(target, HWY_DISPATCH_TABLE(Bf16Entries))();
}
}  // namespace towers::cpu
#endif
