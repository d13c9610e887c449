#pragma once
// How work is cut into blocks of up to 256 threads.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace towers::cuda {

inline constexpr std::size_t kBlockThreads = 256;

struct Grid {
  dim3 blocks, threads;
};

constexpr std::size_t divide_up(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}
constexpr unsigned to_unsigned(std::size_t value) {
  return static_cast<unsigned>(value);
}
constexpr std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

// Item i is thread i % 256 of block i / 256.
inline Grid flat_grid(std::size_t items) {
  return {dim3(to_unsigned(divide_up(items, kBlockThreads))), dim3(to_unsigned(kBlockThreads))};
}

// Row r is blockIdx.x * blockDim.y + threadIdx.y, item i of it is blockIdx.y * blockDim.x +
// threadIdx.x: long rows are cut evenly, short ones share a block.
inline Grid row_grid(std::size_t rows, std::size_t items) {
  constexpr std::size_t kWarp = 32;
  const std::size_t parts = std::max<std::size_t>(1, divide_up(items, kBlockThreads));
  const std::size_t x = std::max<std::size_t>(1, divide_up(divide_up(items, parts), kWarp)) * kWarp;
  const std::size_t y = kBlockThreads / x;
  return {dim3(to_unsigned(divide_up(rows, y)), to_unsigned(divide_up(items, x))),
          dim3(to_unsigned(x), to_unsigned(y))};
}

// Row r is blockIdx.x * blockDim.y + threadIdx.y; its items are threadIdx.x, threadIdx.x +
// blockDim.x, ...: a row lies in one block.
inline Grid whole_row_grid(std::size_t rows, std::size_t items) {
  const std::size_t x = std::clamp<std::size_t>(items, 1, kBlockThreads);
  const std::size_t y = kBlockThreads / x;
  return {dim3(to_unsigned(divide_up(rows, y))), dim3(to_unsigned(x), to_unsigned(y))};
}

// Whether `values` can be read four at a time: a row of `channels` of them, and the first one.
template <class T>
bool in_fours(int channels, const T* values) {
  return channels % 4 == 0 && reinterpret_cast<std::uintptr_t>(values) % (4 * sizeof(T)) == 0;
}
template <class T, class... Rest>
bool in_fours(int channels, const T* values, const Rest*... rest) {
  return in_fours(channels, values) && in_fours(channels, rest...);
}

}  // namespace towers::cuda
