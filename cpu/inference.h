#pragma once
// Forward passes on one CPU device.

#include <memory>

#include "core/backend.h"
#include "cpu/machine.h"
#include "cpu/memory.h"
#include "cpu/plan.h"

namespace towers::cpu {

class CpuInference final : public Inference {
 public:
  CpuInference(std::shared_ptr<Machine> machine, const Net& net, int batch_size, int device);

  void write_variables(std::span<const float> variables) override;
  void logits(const Batch& batch, std::span<float> logits) override;

 private:
  std::shared_ptr<Machine> machine_;
  VariableLayout layout_;
  ThreadPool& pool_;
  int batch_size_, classes_;
  Memory memory_;
  std::span<float> variables_;
  Plan plan_;
};

}  // namespace towers::cpu
