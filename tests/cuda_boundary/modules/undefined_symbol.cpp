// A module made for a cuDNN that has more than the one that is there.
#include "cuda/backend.h"

extern "C" int cudnnOfTheFuture();

namespace towers::cuda {
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions&) {
  cudnnOfTheFuture();
  return nullptr;
}
}  // namespace towers::cuda
