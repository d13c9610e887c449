#pragma once
// In the place of the product's cuda/launch.h: a kernel is a plain function, called once per
// thread.

#include <cuda_runtime.h>

#include <functional>
#include <initializer_list>
#include <type_traits>

#include "cuda/runtime.h"

namespace towers::cuda_host {

// Enqueues blocks * threads calls of `thread`. `pointers`: the kernel's pointer arguments, which
// must not be plain host memory.
cudaError_t launch_kernel(cudaStream_t stream, dim3 blocks, dim3 threads,
                          std::initializer_list<const volatile void*> pointers,
                          std::function<void()> thread);

template <class T>
const volatile void* pointer_or_null(const T& argument) {
  if constexpr (std::is_pointer_v<T>)
    return argument;
  else
    return nullptr;
}

}  // namespace towers::cuda_host

namespace towers::cuda {

template <class... Parameters>
void launch(void (*kernel)(Parameters...), dim3 blocks, dim3 threads, Stream& stream,
            std::type_identity_t<Parameters>... arguments) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;  // nothing to do
  const DeviceGuard guard(stream.device());
  check(cuda_host::launch_kernel(stream.get(), blocks, threads,
                                 {cuda_host::pointer_or_null(arguments)...},
                                 [=] { kernel(arguments...); }),
        "launch");
}

}  // namespace towers::cuda
