#pragma once
// What every function of the C interface does first and last.

#include <string>

#include "tests/cuda_host/world.h"

namespace towers::cuda_host {

class Call {
 public:
  World* operator->() const { return &*world_; }
  World& operator*() const { return *world_; }

  // After a fault nothing works any more, as with CUDA; on a device that failed, nothing of it.
  bool refused() const { return world_->sticky != cudaSuccess; }
  bool refused(int device) const { return refused() || world_->failed(device); }
  cudaError_t error() const {
    return returns(refused() ? world_->sticky : cudaErrorIllegalAddress);
  }
  cudaError_t returns(cudaError_t status) const;  // and keeps it for cudaGetLastError
  // Destroying or freeing what is not there: destructors ignore the error, tests must not.
  cudaError_t misuse(const std::string& what) const;

 private:
  Locked world_;
};

int current_device();

}  // namespace towers::cuda_host
