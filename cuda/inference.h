#pragma once
// Forward only, on one GPU, in the precision that T stores.

#include "core/backend.h"
#include "core/variables.h"
#include "cuda/plan.h"

namespace towers::cuda {

template <class T>
class CudaInference final : public Inference {
 public:
  // engines: while it compiles, for what is said there; it keeps none.
  CudaInference(const Net& net, int batch_size, int device, bool allow_tf32, EngineCache* engines);

  void write_variables(std::span<const float> variables) override;
  void logits(const Batch& batch, std::span<float> logits) override;

 private:
  VariableLayout layout_;
  int batch_size_;
  std::size_t image_size_, classes_;
  Stream stream_;
  DeviceMemory memory_;
  std::span<Wide<T>> variables_;
  std::span<T> working_;       // the same where T is the wide type
  std::span<float> arrivals_;  // empty where T is float
  std::span<T> images_;
  Plan<T> plan_;
};

}  // namespace towers::cuda
