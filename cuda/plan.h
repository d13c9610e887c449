#pragma once
// A net compiled for one device, batch size and precision: its layers, their memory and the order
// of work.

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
template <class T>
struct PlanMemory {
  const T* working = nullptr;          // the variables as the layers read them
  const Wide<T>* variables = nullptr;  // the same where T is the wide type
  // Of one tower, without weight decay, times the loss scale; null: forward only.
  Wide<T>* gradients = nullptr;
  float* cross_entropy = nullptr;         // one value, with gradients
  const LossScale* loss_scale = nullptr;  // of float16, with gradients
};

struct PlanOptions {
  int batch_size = 0;
  bool allow_tf32 = false, deterministic = false, direct = false;
  EngineCache* engines = nullptr;  // of convolutions; null: none are kept
  bool buckets = false;            // cut the backward pass where a bucket of gradients is complete
};

// A part of the gradients that is complete at once: values [begin, end) of the flat buffer.
struct Bucket {
  std::size_t begin = 0, end = 0;
};

// Everything enqueues on the stream handed in, whose device is the plan's, and may be captured.
template <class T>
class Plan {
 public:
  Plan(const Net& net, const VariableLayout& layout, const PlanOptions& options,
       const PlanMemory<T>& memory, Stream& stream);

  // images: [batch_size][input], device memory, as for the other calls of the same step.
  // Writes logits().
  void forward(Stream& stream, const T* images);
  // The backward pass, in one part for each bucket: parts 0, 1, ... in order, after forward.
  // labels: [batch_size], device memory.
  void backward(Stream& stream, const T* images, const std::int32_t* labels, std::size_t part);
  const std::vector<Bucket>& buckets() const { return buckets_; }  // one for each part

  const Wide<T>* logits() const { return logits_; }  // [batch_size][classes]
  // Output of the named convolution or dense layer, read to `out`; false where the net has no such
  // layer. Waits for the stream.
  bool read_activations(Stream& stream, const std::string& layer, std::vector<float>& out) const;

 private:
  // Of the backward pass: what a layer does next.
  enum class Work { weight_gradient, input_gradient };
  struct Task {
    std::size_t layer;
    Work work;
  };

  std::vector<Pairing> pairings_of(const PlanOptions& options) const;
  // What is known before there is memory, and all of it.
  LayerSetting<T> shape_setting(std::size_t layer, const PlanOptions& options) const;
  LayerSetting<T> layer_setting(std::size_t layer, const VariableLayout& layout,
                                const PlanOptions& options, Stream& stream);
  void plan_backward(const VariableLayout& layout, bool buckets);
  const T* input_of(std::size_t layer, const T* images) const {
    return layer > 0 ? values_[layer - 1] : images;
  }

  Net net_;
  std::vector<Extent> extents_;
  int batch_size_;
  PlanMemory<T> memory_;
  std::size_t lowest_;  // layer with variables: no gradient is wanted below it
  Workspace workspace_;
  std::vector<std::unique_ptr<LayerPlan<T>>>
      layers_;                          // all but the loss; null: done by the one before
  std::vector<T*> values_, gradients_;  // of each layer's output; null: not kept
  Wide<T>* logits_ = nullptr;           // the last one's output, or a copy that is not narrow
  Wide<T>* losses_ = nullptr;           // [batch_size]
  std::vector<std::vector<Task>> parts_;
  std::vector<Bucket> buckets_;
  // The last member goes first, and waits for the device: what the layers hold of cuDNN and
  // cuBLASLt must not go while a kernel of theirs runs.
  DeviceMemory device_;
};

}  // namespace towers::cuda
