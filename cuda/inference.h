#pragma once
// Forward only, on one GPU.

#include "core/backend.h"
#include "core/variables.h"
#include "cuda/plan.h"

namespace towers::cuda {

class CudaInference final : public Inference {
 public:
  CudaInference(const Net& net, int batch_size, int device, bool allow_tf32);

  void write_variables(std::span<const float> variables) override;
  void logits(const Batch& batch, std::span<float> logits) override;

 private:
  VariableLayout layout_;
  int batch_size_;
  std::size_t image_size_, classes_;
  Stream stream_;
  DeviceMemory memory_;
  std::span<float> variables_, images_;
  Plan plan_;
};

}  // namespace towers::cuda
