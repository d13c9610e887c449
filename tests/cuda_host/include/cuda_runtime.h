#pragma once
// CUDA's language for plain g++ and clang++: what a kernel reads and calls. The threads of a block
// are fibers of one host thread, so that atomics are plain operations and a thread only stops where
// it waits for others. See README.md of tests/cuda_host.

#include <math.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda_runtime_api.h"
#include "device_functions.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

// Static shared memory: a section of its own, so that it can be spoilt before each block. Write
// alignas in front of __shared__. GCC does not let inline functions' variables share a section with
// others' unless it takes them for different ones: what follows the # is a comment to the
// assembler. It also forgets the attribute in templates, where only Clang's builds spoil.
#if defined(__clang__)
#define __shared__ static __attribute__((section("towers_shared")))
#else
#define TOWERS_TEXT_OF(x) #x
#define TOWERS_TEXT(x) TOWERS_TEXT_OF(x)
#define __shared__ \
  static __attribute__((section("towers_shared,\"aw\",@progbits\n#" TOWERS_TEXT(__COUNTER__))))
#endif

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

#define TOWERS_VECTORS(type, name, alignment)                     \
  struct alignas(2 * alignment) name##2 {                         \
    type x, y;                                                    \
  };                                                              \
  struct name##3 {                                                \
    type x, y, z;                                                 \
  };                                                              \
  struct alignas(4 * alignment) name##4 {                         \
    type x, y, z, w;                                              \
  };                                                              \
  inline name##2 make_##name##2(type x, type y) {                 \
    return {x, y};                                                \
  }                                                               \
  inline name##3 make_##name##3(type x, type y, type z) {         \
    return {x, y, z};                                             \
  }                                                               \
  inline name##4 make_##name##4(type x, type y, type z, type w) { \
    return {x, y, z, w};                                          \
  }
TOWERS_VECTORS(float, float, 4)
TOWERS_VECTORS(int, int, 4)
TOWERS_VECTORS(signed char, char, 1)
TOWERS_VECTORS(unsigned char, uchar, 1)
#undef TOWERS_VECTORS
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
inline uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
inline double2 make_double2(double x, double y) {
  return {x, y};
}

// ---- Threads of a block. `line` tells barriers apart.
inline void __syncthreads(int line = __builtin_LINE()) {
  towers::cuda_host::block_barrier(line);
}
inline int __syncthreads_or(int value, int line = __builtin_LINE()) {
  return towers::cuda_host::block_count(value != 0, line) != 0;
}
inline int __syncthreads_and(int value, int line = __builtin_LINE()) {
  return towers::cuda_host::block_count(value == 0, line) == 0;
}
inline int __syncthreads_count(int value, int line = __builtin_LINE()) {
  return towers::cuda_host::block_count(value != 0, line);
}
inline void __syncwarp(unsigned mask = ~0u) {
  towers::cuda_host::warp_exchange(mask, 0);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

namespace towers::cuda_host {
// The value of lane `source`, or one's own where that lies outside of one's group of `width` lanes.
template <class T>
T shuffle(unsigned mask, T value, int source, int width) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const std::uint64_t* lanes = warp_exchange(mask, word);
  const int lane = this_lane();
  if (source < 0 || source >= warpSize || source / width != lane / width) source = lane;
  std::memcpy(&value, &lanes[source], sizeof value);
  return value;
}
}  // namespace towers::cuda_host

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const int first = towers::cuda_host::this_lane() / width * width;
  return towers::cuda_host::shuffle(mask, value, first + (source & (width - 1)), width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize) {
  return towers::cuda_host::shuffle(mask, value, towers::cuda_host::this_lane() ^ bits, width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
  return towers::cuda_host::shuffle(mask, value,
                                    towers::cuda_host::this_lane() + static_cast<int>(by), width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
  return towers::cuda_host::shuffle(mask, value,
                                    towers::cuda_host::this_lane() - static_cast<int>(by), width);
}
inline unsigned __ballot_sync(unsigned mask, int value) {
  const std::uint64_t* lanes = towers::cuda_host::warp_exchange(mask, value != 0);
  unsigned set = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0 && lanes[lane] == 1) set |= 1u << lane;
  return set;
}
inline int __any_sync(unsigned mask, int value) {
  return __ballot_sync(mask, value) != 0;
}
inline int __all_sync(unsigned mask, int value) {
  return __ballot_sync(mask, value == 0) == 0;
}

// ---- Atomics, of the types that CUDA has them for.
#define TOWERS_ATOMICS(type)                 \
  inline type atomicAdd(type* at, type v) {  \
    const type old = *at;                    \
    *at = static_cast<type>(old + v);        \
    return old;                              \
  }                                          \
  inline type atomicExch(type* at, type v) { \
    const type old = *at;                    \
    *at = v;                                 \
    return old;                              \
  }
#define TOWERS_INTEGER_ATOMICS(type)                       \
  TOWERS_ATOMICS(type)                                     \
  inline type atomicMin(type* at, type v) {                \
    const type old = *at;                                  \
    if (v < old) *at = v;                                  \
    return old;                                            \
  }                                                        \
  inline type atomicMax(type* at, type v) {                \
    const type old = *at;                                  \
    if (v > old) *at = v;                                  \
    return old;                                            \
  }                                                        \
  inline type atomicOr(type* at, type v) {                 \
    const type old = *at;                                  \
    *at |= v;                                              \
    return old;                                            \
  }                                                        \
  inline type atomicCAS(type* at, type expected, type v) { \
    const type old = *at;                                  \
    if (old == expected) *at = v;                          \
    return old;                                            \
  }
TOWERS_ATOMICS(float)
TOWERS_ATOMICS(double)
TOWERS_INTEGER_ATOMICS(int)
TOWERS_INTEGER_ATOMICS(unsigned)
TOWERS_INTEGER_ATOMICS(unsigned long long)
#undef TOWERS_ATOMICS
#undef TOWERS_INTEGER_ATOMICS

// ---- Arithmetic.
template <class T>
T __ldg(const T* at) {
  return *at;
}
inline float rsqrtf(float x) {
  return 1 / sqrtf(x);
}
inline float __expf(float x) {
  return expf(x);
}
inline float __logf(float x) {
  return logf(x);
}
inline float __powf(float x, float y) {
  return powf(x, y);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __frcp_rn(float x) {
  return 1 / x;
}
inline float __fadd_rn(float x, float y) {
  return x + y;
}
inline float __fmul_rn(float x, float y) {
  return x * y;
}
inline float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}
inline int __float_as_int(float x) {
  int bits;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
inline float __int_as_float(int bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline unsigned __float_as_uint(float x) {
  return static_cast<unsigned>(__float_as_int(x));
}
inline float __uint_as_float(unsigned bits) {
  return __int_as_float(static_cast<int>(bits));
}
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(x) * y >> 32);
}
#define TOWERS_MIN_MAX(type)           \
  constexpr type min(type x, type y) { \
    return y < x ? y : x;              \
  }                                    \
  constexpr type max(type x, type y) { \
    return x < y ? y : x;              \
  }
TOWERS_MIN_MAX(int)
TOWERS_MIN_MAX(unsigned)
TOWERS_MIN_MAX(long long)
TOWERS_MIN_MAX(unsigned long long)
#undef TOWERS_MIN_MAX
// As CUDA's: what is not a number loses against a number.
inline float min(float x, float y) {
  return fminf(x, y);
}
inline float max(float x, float y) {
  return fmaxf(x, y);
}
