#include "cpu/local_response_norm.h"

#include <cmath>

#include "cpu/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/local_response_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

// Calls FUNCTION(d, c, ...) for all channels, in whole vectors and then one by one.
#define TOWERS_FOR_CHANNELS(channels, FUNCTION, ...)                             \
  do {                                                                           \
    const hn::ScalableTag<float> whole;                                          \
    const hn::CappedTag<float, 1> one;                                           \
    const std::ptrdiff_t lanes = static_cast<std::ptrdiff_t>(hn::Lanes(whole));  \
    std::ptrdiff_t c = 0;                                                        \
    for (; c + lanes <= (channels); c += lanes) FUNCTION(whole, c, __VA_ARGS__); \
    for (; c < (channels); ++c) FUNCTION(one, c, __VA_ARGS__);                   \
  } while (false)

#if HWY_TARGET == HWY_AVX3
// Lanes from `count` on of `low`, then the first ones of `high`.
template <int count>
HWY_INLINE __m512 Shifted(__m512 low, __m512 high) {
  return _mm512_castsi512_ps(
      _mm512_alignr_epi32(_mm512_castps_si512(high), _mm512_castps_si512(low), count));
}

// WindowSum for a radius of 4: sums of 2, 4 and 8 values, and the ninth. Registers are shifted
// because loads at nine places would cross as many cache lines.
HWY_INLINE __m512 SumOfNine(const float* from) {
  const __m512 x = _mm512_loadu_ps(from);
  const __m512 rest = _mm512_zextps256_ps512(_mm256_loadu_ps(from + 16));
  const __m512 two = _mm512_add_ps(x, Shifted<1>(x, rest));
  const __m512 rest_of_two = _mm512_add_ps(rest, Shifted<1>(rest, rest));
  const __m512 four = _mm512_add_ps(two, Shifted<2>(two, rest_of_two));
  const __m512 rest_of_four = _mm512_add_ps(rest_of_two, Shifted<2>(rest_of_two, rest_of_two));
  const __m512 eight = _mm512_add_ps(four, Shifted<4>(four, rest_of_four));
  return _mm512_add_ps(eight, Shifted<8>(x, rest));
}
#endif

// Sum of the 2 * radius + 1 values from `from` on; `from` has a margin of `radius` zeros around
// each pixel's channels.
template <class D>
HWY_INLINE V<D> WindowSum(D d, const float* from, int radius) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (hn::MaxLanes(D()) == 16) {
    if (radius == 4) return V<D>{SumOfNine(from)};
  }
#endif
  V<D> sum = hn::LoadU(d, from);
  for (int i = 1; i <= 2 * radius; ++i) sum = hn::Add(sum, hn::LoadU(d, from + i));
  return sum;
}

// s^-beta and s^-(beta + 1).
template <class D>
struct Powers {
  V<D> scale, scale_over_s;
};

template <class D>
HWY_INLINE Powers<D> PowersOf(D d, V<D> s, float beta) {
  const V<D> inverse = hn::Div(hn::Set(d, 1.0f), s);
  if (beta == 0.75f) {  // s^-0.75 = s^0.25 / s
    const V<D> scale = hn::Mul(hn::Sqrt(hn::Sqrt(s)), inverse);
    return {scale, hn::Mul(scale, inverse)};
  }
  HWY_ALIGN float lane[hn::MaxLanes(d)];
  hn::Store(s, d, lane);
  for (float& value : lane) value = std::pow(value, -beta);
  const V<D> scale = hn::Load(d, lane);
  return {scale, hn::Mul(scale, inverse)};
}

template <class D>
HWY_INLINE V<D> DivisorOf(D d, const NormShape& s, const float* squares) {
  return hn::MulAdd(hn::Set(d, s.alpha), WindowSum(d, squares, s.radius), hn::Set(d, s.bias));
}

template <class D>
HWY_INLINE void Square(D d, std::ptrdiff_t c, const float* x, float* squares) {
  const V<D> v = hn::LoadU(d, x + c);
  hn::StoreU(hn::Mul(v, v), d, squares + c);
}

template <class D>
HWY_INLINE void Normalize(D d, std::ptrdiff_t c, const NormShape& s, const float* x,
                          const float* squares, float* y) {
  const V<D> scale = PowersOf(d, DivisorOf(d, s, squares + c), s.beta).scale;
  hn::StoreU(hn::Mul(hn::LoadU(d, x + c), scale), d, y + c);
}

// The two parts of the gradient: g * s^-beta to d_x, g * x * s^-(beta + 1) to `products`.
template <class D>
HWY_INLINE void Differentiate(D d, std::ptrdiff_t c, const NormShape& s, const float* x,
                              const float* g, const float* squares, float* products, float* d_x) {
  const Powers<D> powers = PowersOf(d, DivisorOf(d, s, squares + c), s.beta);
  const V<D> gradient = hn::LoadU(d, g + c);
  const V<D> value = hn::LoadU(d, x + c);
  hn::StoreU(hn::Mul(hn::Mul(gradient, value), powers.scale_over_s), d, products + c);
  hn::StoreU(hn::Mul(gradient, powers.scale), d, d_x + c);
}

template <class D>
HWY_INLINE void Combine(D d, std::ptrdiff_t c, const NormShape& s, const float* x,
                        const float* products, bool relu_input, float* d_x) {
  const V<D> value = hn::LoadU(d, x + c);
  const V<D> factor = hn::Mul(hn::Set(d, -2.0f * s.alpha * s.beta), value);
  V<D> gradient = hn::MulAdd(factor, WindowSum(d, products + c, s.radius), hn::LoadU(d, d_x + c));
  if (relu_input) gradient = hn::IfThenZeroElse(hn::Le(value, hn::Zero(d)), gradient);
  hn::StoreU(gradient, d, d_x + c);
}

// Row y, where there is one.
HWY_INLINE void PrefetchRow(const Extent& extent, ConstView view, int y) {
  if (y < extent.height) prefetch_pixels(view, y, 1, 0, extent.width, extent.channels);
}

// A row of pixels at a time: what one pass stores has long left the store buffer when the next
// one reads it at other offsets.
void Forward(const NormShape& s, ConstView in, View out, float* scratch) {
  const std::ptrdiff_t channels = s.extent.channels, padded = channels + 2 * s.radius;
  for (int y = 0; y < s.extent.height; ++y) {
    PrefetchRow(s.extent, out, y + 1);
    for (int x = 0; x < s.extent.width; ++x) {
      float* squares = scratch + x * padded + s.radius;
      TOWERS_FOR_CHANNELS(channels, Square, in.at(y, x), squares);
    }
    for (int x = 0; x < s.extent.width; ++x)
      TOWERS_FOR_CHANNELS(channels, Normalize, s, in.at(y, x), scratch + x * padded, out.at(y, x));
  }
}

void Backward(const NormShape& s, ConstView in, ConstView d_out, View d_in, bool relu_input,
              float* scratch) {
  const std::ptrdiff_t channels = s.extent.channels, padded = channels + 2 * s.radius;
  float* all_products = scratch + s.extent.width * padded;
  for (int y = 0; y < s.extent.height; ++y) {
    PrefetchRow(s.extent, in, y + 1);
    for (int x = 0; x < s.extent.width; ++x) {
      float* squares = scratch + x * padded + s.radius;
      TOWERS_FOR_CHANNELS(channels, Square, in.at(y, x), squares);
    }
    for (int x = 0; x < s.extent.width; ++x) {
      float* products = all_products + x * padded + s.radius;
      TOWERS_FOR_CHANNELS(channels, Differentiate, s, in.at(y, x), d_out.at(y, x),
                          scratch + x * padded, products, d_in.at(y, x));
    }
    for (int x = 0; x < s.extent.width; ++x)
      TOWERS_FOR_CHANNELS(channels, Combine, s, in.at(y, x), all_products + x * padded, relu_input,
                          d_in.at(y, x));
  }
}

#undef TOWERS_FOR_CHANNELS

NormKernels NormEntries() {
  return {HWY_TARGET, &Forward, &Backward};
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(NormEntries);
NormKernels norm_kernels(SimdTarget target) {
  return entry_for(target, HWY_DISPATCH_TABLE(NormEntries))();
}
}  // namespace towers::cpu
#endif
