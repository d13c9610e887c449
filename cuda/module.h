#pragma once
// The boundary of libtowers_cuda.so: all that the binary and the tests know of it. The module is
// loaded at run time (cuda/loader.h), so that the binary itself needs no CUDA library.

#include <cstddef>
#include <string>

#include "core/backend.h"

namespace towers::cuda {

struct BackendOptions {
  bool allow_tf32 = false;                           // fp32 products may round their inputs to TF32
  void (*debug)(const std::string& line) = nullptr;  // takes lines for who debugs
  void (*warning)(const std::string& line) = nullptr;  // takes lines for all
};

// What the module exports, as "towers_cuda_backend". `stamp` is the caller's kModuleStamp (see
// cuda/stamp.h.in): a module of another build is refused, for classes cross this boundary. Returns
// 0 and the backend, which the caller deletes; or 1 and a line of text for the user in `error`, cut
// to error_size.
using CreateBackend = int (*)(const char* stamp, const BackendOptions* options, Backend** backend,
                              char* error, std::size_t error_size);

inline constexpr const char* kModuleFunction = "towers_cuda_backend";
// How the error of a module with another stamp begins; its own stamp follows.
inline constexpr const char* kStaleModule = "stale: ";

}  // namespace towers::cuda
