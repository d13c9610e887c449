#pragma once
// A layer that works on a few images at a time: convolution, max pooling, local response
// normalization. A Chain runs several of them over the same images while they are in cache.

#include <memory>
#include <span>

#include "core/variables.h"
#include "cpu/arithmetic.h"
#include "cpu/kernels.h"
#include "cpu/layer_clock.h"
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
  Arithmetic arithmetic{};
  bool training = false;    // backward will be called
  bool relu_input = false;  // the input is the output of a relu, whose gradient is applied here
  bool wants_input_gradient = false;
  std::size_t gradient_origin =
      0;                        // offset in the variables' layout where the chain's gradients start
  LayerClock* clock = nullptr;  // null: nobody asks
};

// The consecutive images of one call.
struct Run {
  int first = 0;  // in the batch
  int count = 1;
  int worker = 0;  // of the thread pool: for scratch memory
};

// The gradients of variables are summed over the calls of a worker from one with `begins` to one
// with `ends`; `weights` needs to hold the sum after the last one alone.
struct RunGradients {
  ConstView in;
  ConstView d_out;           // before the layer's own relu, whose gradient is in it already
  View d_in;                 // written whole, unless its data is null; with relu_input zero where
                             // `in` is not positive
  std::span<float> weights;  // the chain's gradients from gradient_origin on
  bool begins = true, ends = true;
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
  // The most images that a call takes. Fewer change no byte of what forward writes, nor of d_in.
  virtual int longest_run() const { return 1; }

  // Once per step, before the first image, from the device's leader. `variables` stay as they are
  // until the step is over.
  virtual void prepare(std::span<const float> /*variables*/) {}
  virtual void forward(ConstView in, View out, Run run) = 0;
  virtual void backward(const RunGradients& gradients, Run run) = 0;
};

// By the method that suits the shape and setting.arithmetic.
std::unique_ptr<SpatialLayer> make_conv2d(const Convolution& convolution, const Extent& input,
                                          const Extent& output, const Variable& weights,
                                          const Variable& biases, const LayerSetting& setting);
std::unique_ptr<SpatialLayer> make_direct_conv2d(const Convolution& convolution,
                                                 const Extent& input, const Extent& output,
                                                 const Variable& weights, const Variable& biases,
                                                 const LayerSetting& setting);
// The transforms' kernel size, at stride 1.
std::unique_ptr<SpatialLayer> make_winograd_conv2d(const Convolution& convolution,
                                                   const Extent& input, const Variable& weights,
                                                   const Variable& biases,
                                                   const WinogradKernels& kernels,
                                                   const LayerSetting& setting);
// By NarrowWinogradKernels: of images with that many channels, whose gradient is not wanted.
std::unique_ptr<SpatialLayer> make_narrow_winograd_conv2d(const Convolution& convolution,
                                                          const Extent& input,
                                                          const Variable& weights,
                                                          const Variable& biases,
                                                          const LayerSetting& setting);
std::unique_ptr<SpatialLayer> make_max_pool(const MaxPool& pool, const Extent& input,
                                            const Extent& output, const LayerSetting& setting);
std::unique_ptr<SpatialLayer> make_local_response_norm(const LocalResponseNorm& norm,
                                                       const Extent& extent,
                                                       const LayerSetting& setting);

}  // namespace towers::cpu
