#include "cuda/product.h"

#include <map>

#include "core/error.h"

namespace towers::cuda {

void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text(call);
  throw Error(text.substr(0, text.find('(')) + ": " + cublasLtGetStatusString(status));
}

cublasLtHandle_t cublas_of(const Stream& stream) {
  static std::map<int, cublasLtHandle_t> handles;
  cublasLtHandle_t& handle = handles[stream.device()];
  if (handle == nullptr) {
    const DeviceGuard guard(stream.device());
    TOWERS_CUBLAS(cublasLtCreate(&handle));
  }
  return handle;
}

}  // namespace towers::cuda
