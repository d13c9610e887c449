#pragma once
// In the place of the product's cuda/launch.h: a kernel is a plain function, called once per
// thread.

#include <cuda_runtime.h>

#include <functional>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda/runtime.h"

namespace towers::cuda_host {

// A kernel, and what makes the call of one thread of arguments that may go afterwards.
struct Kernel {
  const void* function;
  std::function<std::function<void()>(void** arguments)> bind;
};

// Enqueues blocks * threads calls of the kernel. `pointers`: its pointer arguments, which must not
// be plain host memory.
cudaError_t launch_kernel(cudaStream_t stream, dim3 blocks, dim3 threads,
                          std::initializer_list<const volatile void*> pointers, Kernel kernel,
                          void** arguments);

template <class... Parameters, std::size_t... I>
std::function<void()> bind(void (*kernel)(Parameters...), void** arguments,
                           std::index_sequence<I...>) {
  return [kernel, values = std::tuple<Parameters...>(*static_cast<Parameters*>(arguments[I])...)] {
    std::apply(kernel, values);
  };
}

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
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  check(cuda_host::launch_kernel(
            stream.get(), blocks, threads, {cuda_host::pointer_or_null(arguments)...},
            {reinterpret_cast<const void*>(kernel),
             [kernel](void** values) {
               return cuda_host::bind(kernel, values, std::index_sequence_for<Parameters...>());
             }},
            pointers),
        "launch");
}

}  // namespace towers::cuda
