#pragma once
// Forward passes on one CPU device.

#include <memory>

#include "core/backend.h"
#include "cpu/machine.h"
#include "cpu/memory.h"
#include "cpu/number.h"

namespace towers::cpu {

// Of a kind of number (cpu/number.h): Fp32 or Fp64.
template <class Number>
class CpuInference final : public Inference {
 public:
  CpuInference(std::shared_ptr<Machine> machine, const Net& net, int batch_size,
               Precision precision, int device);

  void write_variables(std::span<const float> variables) override;
  void logits(const Batch& batch, std::span<float> logits) override;

 private:
  std::shared_ptr<Machine> machine_;
  VariableLayout layout_;
  ThreadPool& pool_;
  int batch_size_, classes_;
  Memory memory_;
  std::span<typename Number::Real> variables_;
  std::unique_ptr<typename Number::Plan> plan_;
};

}  // namespace towers::cpu
