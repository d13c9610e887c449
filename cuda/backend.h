#pragma once
// The GPU backend, as the module makes it.

#include <memory>

#include "core/backend.h"
#include "cuda/module.h"

namespace towers::cuda {

// Towers on all GPUs that CUDA_VISIBLE_DEVICES leaves. Throws Error where there is none.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

}  // namespace towers::cuda
