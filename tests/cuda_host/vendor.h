#pragma once
// What the stand-ins for vendors' libraries share: operations enqueued as one piece of work, whose
// tensors are checked when they are handed over.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>

#include "cuda/runtime.h"

namespace towers::cuda_host {

struct Tensor {
  const void* data = nullptr;
  std::size_t bytes = 0;
};
inline Tensor floats(const float* data, std::size_t count) {
  return {data, count * sizeof(float)};
}
template <class... Factors>
std::size_t product(Factors... factors) {
  return (static_cast<std::size_t>(factors) * ...);
}

// Enqueues `run`. Throws std::logic_error where a tensor does not lie in one allocation of the
// stream's device or is not aligned to 16 bytes, or where the workspace is not or is not aligned to
// 256. The workspace is spoilt before and after.
void enqueue_operation(cuda::Stream& stream, const std::string& name,
                       std::initializer_list<Tensor> tensors, Tensor workspace,
                       std::function<void()> run);

}  // namespace towers::cuda_host
