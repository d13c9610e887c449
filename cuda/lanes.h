#pragma once
// Neighbouring values that one instruction loads or stores.

#include <cstddef>

#include "core/host_device.h"

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

// `from` and `to` are aligned to N values.
template <int N, class T>
TOWERS_HD inline Lanes<T, N> load(const T* from) {
  return *reinterpret_cast<const Lanes<T, N>*>(from);
}
template <int N, class T>
TOWERS_HD inline void store(T* to, const Lanes<T, N>& lanes) {
  *reinterpret_cast<Lanes<T, N>*>(to) = lanes;
}

template <int N, class T>
TOWERS_HD inline Lanes<T, N> filled(T value) {
  Lanes<T, N> lanes;
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i) lanes.at[i] = value;
  return lanes;
}

template <int N>
TOWERS_HD inline void add(Lanes<float, N>& sum, const Lanes<float, N>& added) {
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i) sum.at[i] += added.at[i];
}

}  // namespace towers::cuda
