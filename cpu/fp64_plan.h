#pragma once
// A net in double precision for one CPU device and batch size, for checking: each image passes
// forward and backward on one thread, layer by layer, without blocking or fusion.

#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/net.h"
#include "core/variables.h"
#include "cpu/layer_done.h"
#include "cpu/memory.h"
#include "cpu/thread_pool.h"

namespace towers::cpu {

// As Plan (cpu/plan.h), with doubles for floats.
class Fp64Plan {
 public:
  // `pool` must outlive the plan.
  Fp64Plan(const Net& net, const VariableLayout& layout, int batch_size, bool training,
           ThreadPool& pool);

  void prepare(std::span<const double> variables) { variables_ = variables; }
  const double* logits(const Batch& batch, bool keep_activations);
  double gradients(const Batch& batch, bool keep_activations, std::span<double> gradients,
                   const LayerDone& done = {});
  std::span<const float> activations(const std::string& layer) const;

 private:
  struct LayerPlan {
    Layer layer;
    Extent in, out;
    const Variable* weights = nullptr;  // of layout_; null: the layer has none
    const Variable* biases = nullptr;
    std::span<float> activations{};  // [batch][out], where there are weights
  };
  // Of the image that a worker is at.
  struct Scratch {
    std::vector<std::span<double>> outputs;        // by layer; the first one is the image itself
    std::vector<std::span<std::int32_t>> winners;  // by layer, of pools
    std::span<double> d_out, d_in;                 // large enough for any layer
  };

  // The image's logits.
  std::span<const double> forward(const float* image, Scratch& scratch) const;
  void forward_layer(std::size_t l, Scratch& scratch) const;
  void backward(Scratch& scratch, double* gradients) const;
  void backward_layer(std::size_t l, Scratch& scratch, double* d_in, double* gradients) const;
  void keep(std::size_t image, const Scratch& scratch);
  void sum_blocks(std::span<double> gradients);

  VariableLayout layout_;
  Extent input_;
  std::size_t classes_;
  int batch_size_, blocks_;
  ThreadPool& pool_;
  Memory memory_;
  std::vector<LayerPlan> layers_;  // without the loss
  std::vector<Scratch> scratch_;   // of each worker
  std::span<double> logits_;       // [batch][classes]
  std::span<double> losses_;       // [batch]
  std::span<double> partials_;     // [block][layout]
  std::span<const double> variables_;
};

}  // namespace towers::cpu
