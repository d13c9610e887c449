#pragma once
// What tensors are stored as, and the type that kernels compute in: a precision of the command line
// is one of these types from here on, never a condition in the middle.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdexcept>
#include <type_traits>

#include "core/backend.h"
#include "core/host_device.h"

namespace towers::cuda {

// float and double compute in themselves; what has 16 bits is summed, normalized and updated in
// float. Master variables, gradients of weights, logits and losses are of the wide type as well.
template <class T>
struct WideOf {
  using Type = T;
};
template <>
struct WideOf<__half> {
  using Type = float;
};
template <>
struct WideOf<__nv_bfloat16> {
  using Type = float;
};
template <class T>
using Wide = typename WideOf<T>::Type;
template <class T>
inline constexpr bool kNarrow = !std::is_same_v<T, Wide<T>>;

// Whether losses are scaled: the other types have float's range of exponents, or more.
template <class T>
inline constexpr bool kScaled = std::is_same_v<T, __half>;

template <class T>
TOWERS_HD constexpr T widen(T value) {
  return value;
}
TOWERS_HD inline float widen(__half value) {
  return __half2float(value);
}
TOWERS_HD inline float widen(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

// To nearest, ties to even; NaN stays NaN and what is too large becomes infinite.
template <class T>
TOWERS_HD inline T narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(value);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(value);
  else
    return value;
}

// For explicit instantiation.
#define TOWERS_FOR_EACH_STORAGE(X) X(float) X(double) X(__half) X(__nv_bfloat16)
#define TOWERS_FOR_EACH_WIDE(X) X(float) X(double)

// Calls f(std::type_identity<T>()) for the type that `precision` stores.
template <class F>
auto with_storage(Precision precision, const F& f) {
  switch (precision) {
    case Precision::fp32:
      return f(std::type_identity<float>());
    case Precision::bf16:
      return f(std::type_identity<__nv_bfloat16>());
    case Precision::fp16:
      return f(std::type_identity<__half>());
    case Precision::fp64:
      return f(std::type_identity<double>());
  }
  throw std::invalid_argument("no such precision");
}

template <class T>
constexpr Precision precision_of() {
  if constexpr (std::is_same_v<T, double>) return Precision::fp64;
  if constexpr (std::is_same_v<T, __half>) return Precision::fp16;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return Precision::bf16;
  return Precision::fp32;
}

}  // namespace towers::cuda
