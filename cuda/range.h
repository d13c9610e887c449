#pragma once
// Named ranges of the host's calls for NVIDIA's profilers: NVTX's headers alone, where the toolkit
// has them. Nothing is linked, and without a profiler a range costs nanoseconds.

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define TOWERS_NVTX 1
#endif
#endif

namespace towers::cuda {

// From here to the end of the scope.
class Range {
 public:
#ifdef TOWERS_NVTX
  explicit Range(const char* name) {
    nvtxRangePushA(name);
  }
  ~Range() {
    nvtxRangePop();
  }
#else
  explicit Range(const char* /*name*/) {}
  ~Range() {}  // not trivial: an unused one is no mistake
#endif
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace towers::cuda
