#pragma once
// Values in host memory are float (core/backend.h), whatever the device stores.

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "cuda/runtime.h"
#include "cuda/storage.h"

namespace towers::cuda {

// These wait for the stream. Spans are of one length.
template <class T>
void read_as_floats(Stream& stream, std::span<const T> device, std::span<float> out) {
  if constexpr (std::is_same_v<T, float>) {
    copy_to_host(stream, out.data(), device.data(), device.size_bytes());
    stream.synchronize();
  } else {
    std::vector<T> values(device.size());
    copy_to_host(stream, values.data(), device.data(), device.size_bytes());
    stream.synchronize();
    std::transform(values.begin(), values.end(), out.begin(),
                   [](T value) { return static_cast<float>(widen(value)); });
  }
}

template <class W>
void write_floats(Stream& stream, std::span<const float> values, std::span<W> device) {
  const std::vector<W> wide(values.begin(), values.end());
  copy_to_device(stream, device, std::span<const W>(wide));
  stream.synchronize();
}

}  // namespace towers::cuda
