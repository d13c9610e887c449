// A module whose cuDNN is not where libraries are looked for.
#include "cuda/backend.h"

extern "C" int towers_test_library();

namespace towers::cuda {
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions&) {
  towers_test_library();
  return nullptr;
}
}  // namespace towers::cuda
