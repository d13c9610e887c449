#pragma once
// The one place that starts kernels. Plain C++, so that a kernel's launch reads like a call.

#include <cuda_runtime.h>

#include <type_traits>

#include "cuda/runtime.h"

namespace towers::cuda {

// Starts `kernel` with `blocks` blocks of `threads` threads. Kernels use static shared memory only.
template <class... Parameters>
void launch(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, Stream& stream,
            std::type_identity_t<Parameters>... arguments) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;  // nothing to do
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  const DeviceGuard guard(stream.device());
  TOWERS_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, threads, pointers, 0,
                               stream.get()));
}

}  // namespace towers::cuda
