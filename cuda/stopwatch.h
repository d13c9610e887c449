#pragma once
// Times a GPU's work by the GPU's own clock.

#include <cuda_runtime.h>

#include "cuda/runtime.h"

namespace towers::cuda {

// Times what is enqueued between start and stop, on a stream of the device that is current when it
// is made.
class Stopwatch {
 public:
  Stopwatch() {
    TOWERS_CUDA(cudaEventCreate(&start_));
    TOWERS_CUDA(cudaEventCreate(&stop_));
  }
  ~Stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  void start(Stream& stream) { TOWERS_CUDA(cudaEventRecord(start_, stream.get())); }
  // Milliseconds; the host waits.
  float stop(Stream& stream) {
    TOWERS_CUDA(cudaEventRecord(stop_, stream.get()));
    TOWERS_CUDA(cudaEventSynchronize(stop_));
    float milliseconds = 0;
    TOWERS_CUDA(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return milliseconds;
  }

 private:
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

}  // namespace towers::cuda
