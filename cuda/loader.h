#pragma once
// Finds and loads libtowers_cuda.so, or says in one line why there are no towers on GPUs: which
// library, which version is wanted, where it was looked for and what to install. Needs no CUDA.

#include <memory>
#include <optional>
#include <string>

#include "core/backend.h"
#include "cuda/module.h"
#include "cuda/surroundings.h"

namespace towers::cuda {

enum class Lack {
  visible_device,  // CUDA_VISIBLE_DEVICES hides all
  driver,          // libcuda.so.1
  module,          // libtowers_cuda.so itself
  library,         // one that it needs: cuDNN, cuBLASLt
  damaged,         // it is there but cannot be loaded, or exports no backend
  stale,           // of another build
  backend,         // the module's own words: no device, a driver too old, ...
};

struct Reason {
  Lack lack;
  std::string text;  // a line without a full stop
};

struct Loaded {
  std::unique_ptr<Backend> backend;  // null: see `reason`
  std::optional<Reason> reason;
};

// The module stays loaded until the process ends.
Loaded load_backend(const BackendOptions& options, const Surroundings& surroundings);

// Whether the module and the libraries that it needs load; starts nothing. Empty where they do.
std::optional<Reason> why_not_loadable(const Surroundings& surroundings);

// What the module was built with ("CUDA 13.0, cuDNN 9.19, ..."), or why this build has none.
std::string module_build();

}  // namespace towers::cuda
