#pragma once
// Images that the host has made, which are float (core/backend.h), on their way to where a net
// takes them.

#include <cstddef>
#include <span>
#include <type_traits>

#include "cuda/kernels.h"
#include "cuda/runtime.h"

namespace towers::cuda {

// Where they arrive: the destination itself where T is float, else memory of their own, of which
// one is enough for all batches of a stream.
template <class T>
std::span<float> allocate_arrivals(DeviceMemory& memory, std::size_t count) {
  return memory.allocate<float>(std::is_same_v<T, float> ? 0 : count);
}

// Enqueues the copy of `count` values from host memory; `convert_images` is to follow.
template <class T>
void copy_images(Stream& stream, const float* host, std::size_t count, std::span<float> arrivals,
                 T* images) {
  float* to = nullptr;
  if constexpr (std::is_same_v<T, float>)
    to = images;
  else
    to = arrivals.data();
  copy_to_device(stream, to, host, count * sizeof(float));
}

// Enqueues what is left to do: nothing where T is float.
template <class T>
void convert_images(Stream& stream, std::size_t count, std::span<float> arrivals, T* images) {
  if constexpr (!std::is_same_v<T, float>) convert(stream, count, arrivals.data(), images);
}

}  // namespace towers::cuda
