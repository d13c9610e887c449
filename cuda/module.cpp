// The one function that libtowers_cuda.so exports. Nothing is thrown across it.

#include "cuda/module.h"

#include <towers_module_stamp.h>
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "cuda/backend.h"

namespace {

int failed(const std::string& text, char* error, std::size_t error_size) {
  if (error_size > 0) {
    const std::size_t size = std::min(text.size(), error_size - 1);
    std::memcpy(error, text.data(), size);
    error[size] = '\0';
  }
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int towers_cuda_backend(
    const char* stamp, const towers::cuda::BackendOptions* options, towers::Backend** backend,
    char* error, std::size_t error_size) {
  using namespace towers::cuda;
  try {
    // Before any other argument is touched: only with equal stamps do both sides know one layout.
    if (std::strcmp(stamp, kModuleStamp) != 0)
      return failed(std::string(kStaleModule) + kModuleStamp, error, error_size);
    *backend = make_cuda_backend(*options).release();
    return 0;
  } catch (const std::bad_alloc&) {
    return failed("out of memory", error, error_size);
  } catch (const std::exception& caught) {
    return failed(caught.what(), error, error_size);
  } catch (...) {
    return failed("an unknown error", error, error_size);
  }
}
