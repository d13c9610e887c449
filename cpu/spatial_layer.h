#pragma once
// A layer that works image by image: convolution, max pooling, local response normalization. A
// Chain runs several of them over one image while it is in cache.

#include <memory>
#include <span>

#include "core/variables.h"
#include "cpu/kernels.h"
#include "cpu/memory.h"
#include "cpu/thread_pool.h"
#include "cpu/view.h"

namespace towers::cpu {

// What a layer is built for.
struct LayerSetting {
  const Kernels* kernels = nullptr;
  ThreadPool* pool = nullptr;  // of the device
  Memory* memory = nullptr;    // outlives the layer
  int batch_size = 0;
  bool training = false;    // backward will be called
  bool relu_input = false;  // the input is the output of a relu, whose gradient is applied here
  bool wants_input_gradient = false;
  std::size_t gradient_origin =
      0;  // offset in the variables' layout where the chain's gradients start
};

// Where one call happens.
struct Place {
  int image = 0;   // in the batch
  int worker = 0;  // of the thread pool: for scratch memory
};

struct ImageGradients {
  ConstView in, d_out;
  View d_in;                 // written whole, unless its data is null
  std::span<float> weights;  // the chain's gradients from gradient_origin on
  bool accumulate = false;   // add to `weights` rather than overwrite
};

class SpatialLayer {
 public:
  virtual ~SpatialLayer() = default;

  // How forward wants `in` laid out, and backward d_out: the views handed in lie within such
  // buffers.
  virtual Layout input_layout() const = 0;
  virtual Layout output_gradient_layout() const = 0;
  // Whether backward reads `in`.
  virtual bool keeps_input() const = 0;

  // Once per step, before the first image, from the device's leader.
  virtual void prepare(std::span<const float> /*variables*/) {}
  virtual void forward(ConstView in, View out, Place place) = 0;
  virtual void backward(const ImageGradients& gradients, Place place) = 0;
};

std::unique_ptr<SpatialLayer> make_conv2d(const Convolution& convolution, const Extent& input,
                                          const Extent& output, const Variable& weights,
                                          const Variable& biases, const LayerSetting& setting);
std::unique_ptr<SpatialLayer> make_max_pool(const MaxPool& pool, const Extent& input,
                                            const Extent& output, const LayerSetting& setting);
std::unique_ptr<SpatialLayer> make_local_response_norm(const LocalResponseNorm& norm,
                                                       const Extent& extent,
                                                       const LayerSetting& setting);

}  // namespace towers::cpu
