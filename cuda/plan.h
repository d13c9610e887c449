#pragma once
// A net compiled for one device and batch size: its layers, their memory and the order of work.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/net.h"
#include "core/variables.h"
#include "cuda/layers.h"
#include "cuda/runtime.h"

namespace towers::cuda {

// Flat buffers of the variables' layout in device memory, which outlive the plan.
struct PlanMemory {
  const float* variables = nullptr;
  float* gradients = nullptr;      // of one tower, without weight decay; null: forward only
  float* cross_entropy = nullptr;  // one value, with gradients
};

struct PlanOptions {
  int batch_size = 0;
  bool allow_tf32 = false, deterministic = false, direct = false;
  bool buckets = false;  // cut the backward pass where a bucket of gradients is complete
};

// A part of the gradients that is complete at once: values [begin, end) of the flat buffer.
struct Bucket {
  std::size_t begin = 0, end = 0;
};

// Everything enqueues on the stream handed in, whose device is the plan's, and may be captured.
class Plan {
 public:
  Plan(const Net& net, const VariableLayout& layout, const PlanOptions& options,
       const PlanMemory& memory, Stream& stream);

  // images: [batch_size][input], device memory, as for the other calls of the same step.
  // Writes logits().
  void forward(Stream& stream, const float* images);
  // The backward pass, in one part for each bucket: parts 0, 1, ... in order, after forward.
  // labels: [batch_size], device memory.
  void backward(Stream& stream, const float* images, const std::int32_t* labels, std::size_t part);
  const std::vector<Bucket>& buckets() const { return buckets_; }  // one for each part

  const float* logits() const { return values_.back(); }  // [batch_size][classes]
  // Output of the named convolution or dense layer; empty where the net has no such layer.
  std::span<const float> activations(const std::string& layer) const;

 private:
  // Of the backward pass: what a layer does next.
  enum class Work { weight_gradient, input_gradient };
  struct Task {
    std::size_t layer;
    Work work;
  };

  LayerSetting layer_setting(std::size_t layer, const VariableLayout& layout,
                             const PlanOptions& options, Stream& stream);
  void plan_backward(const VariableLayout& layout, bool buckets);
  const float* input_of(std::size_t layer, const float* images) const {
    return layer == 0 ? images : values_[layer - 1];
  }

  Net net_;
  std::vector<Extent> extents_;
  int batch_size_;
  PlanMemory memory_;
  DeviceMemory device_;
  std::size_t lowest_;  // layer with variables: no gradient is wanted below it
  Workspace workspace_;
  std::vector<std::unique_ptr<LayerPlan>>
      layers_;                              // all but the loss; null: done by the one before
  std::vector<float*> values_, gradients_;  // of each layer's output
  float* losses_ = nullptr;                 // [batch_size]
  std::vector<std::vector<Task>> parts_;
  std::vector<Bucket> buckets_;
};

}  // namespace towers::cuda
