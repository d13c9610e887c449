#pragma once
// Neighbouring values that one instruction loads or stores.

#include <cstddef>
#include <type_traits>

#include "core/host_device.h"
#include "cuda/storage.h"

// A loop whose bounds are known when it is compiled, written out, so that its loads are all under
// way before the first one is needed. Host compilers are left to themselves.
#ifdef __CUDACC__
#define TOWERS_UNROLL _Pragma("unroll")
#else
#define TOWERS_UNROLL
#endif

namespace towers::cuda {

template <class T, int N>
struct alignas(sizeof(T) * N) Lanes {
  T at[N];
};

// In memory as T, in registers as the type that T computes in. `from` and `to` are aligned to N
// values.
template <int N, class T>
TOWERS_HD inline Lanes<Wide<T>, N> load(const T* from) {
  const Lanes<T, N> stored = *reinterpret_cast<const Lanes<T, N>*>(from);
  if constexpr (kNarrow<T>) {
    Lanes<Wide<T>, N> lanes;
    TOWERS_UNROLL
    for (int i = 0; i < N; ++i) lanes.at[i] = widen(stored.at[i]);
    return lanes;
  } else {
    return stored;
  }
}
template <class T, class W, int N>
TOWERS_HD inline void store(T* to, const Lanes<W, N>& lanes) {
  static_assert(std::is_same_v<W, Wide<T>>);
  if constexpr (kNarrow<T>) {
    Lanes<T, N> stored;
    TOWERS_UNROLL
    for (int i = 0; i < N; ++i) stored.at[i] = narrow<T>(lanes.at[i]);
    *reinterpret_cast<Lanes<T, N>*>(to) = stored;
  } else {
    *reinterpret_cast<Lanes<T, N>*>(to) = lanes;
  }
}

template <int N, class T>
TOWERS_HD inline Lanes<T, N> filled(T value) {
  Lanes<T, N> lanes;
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i) lanes.at[i] = value;
  return lanes;
}

template <class W, int N>
TOWERS_HD inline void add(Lanes<W, N>& sum, const Lanes<W, N>& added) {
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i) sum.at[i] += added.at[i];
}

}  // namespace towers::cuda
