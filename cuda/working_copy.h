#pragma once
// The variables as the layers read them: narrow values are a copy that every update writes anew,
// wide ones are the variables themselves.

#include <span>

#include "cuda/kernels.h"
#include "cuda/runtime.h"

namespace towers::cuda {

template <class T>
std::span<T> allocate_working(DeviceMemory& memory, std::span<Wide<T>> variables) {
  if constexpr (kNarrow<T>)
    return memory.allocate<T>(variables.size());
  else
    return variables;
}

// Enqueues.
template <class T>
void copy_to_working(Stream& stream, std::span<const Wide<T>> variables, std::span<T> working) {
  if constexpr (kNarrow<T>) convert(stream, variables.size(), variables.data(), working.data());
}

}  // namespace towers::cuda
