#pragma once
// A net compiled for one CPU device and batch size: layouts, memory and the order of work.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/net.h"
#include "core/variables.h"
#include "cpu/arithmetic.h"
#include "cpu/kernels.h"
#include "cpu/layer_clock.h"
#include "cpu/layer_done.h"
#include "cpu/memory.h"
#include "cpu/stage.h"
#include "cpu/thread_pool.h"

namespace towers::cpu {

// What a net is compiled for.
struct PlanSetting {
  int batch_size = 0;
  bool training = false;
  Arithmetic arithmetic{};
};

// All calls but the constructor come from the leader of the device's pool.
class Plan {
 public:
  // `kernels`, `pool` and `clock` must outlive the plan.
  Plan(const Net& net, const VariableLayout& layout, const PlanSetting& setting,
       const Kernels& kernels, ThreadPool& pool, LayerClock* clock = nullptr);

  // Once per step and device, before its towers: packs `variables`, which must stay as they are
  // until the step is over.
  void prepare(std::span<const float> variables);
  // [batch.size][classes], up to the compiled batch size.
  const float* logits(const Batch& batch, bool keep_activations);
  // The gradients of a batch of the compiled size, with weight decay; returns its mean
  // cross-entropy.
  double gradients(const Batch& batch, bool keep_activations, std::span<float> gradients,
                   const LayerDone& done = {});
  // As Towers::activations, of the last batch; empty where the net has no such layer.
  std::span<const float> activations(const std::string& layer) const;

 private:
  struct Step {
    std::unique_ptr<Stage> stage;
    std::size_t first_layer = 0, last_layer = 0;
    std::size_t out_size = 0;     // of one image
    std::span<float> out, d_out;  // [batch][out_size]
  };

  Net net_;
  std::vector<Extent> extents_;
  int batch_size_;
  const Kernels& kernels_;
  Memory memory_;
  std::vector<Step> steps_;
  std::span<const float> variables_;
  bool relu_logits_ = false;
};

}  // namespace towers::cpu
