#pragma once
// The layers of a plan on one device. A gradient d_output is that before the layer's own relu: who
// writes a d_input applies the relu of the layer below to it.

#include <cstddef>
#include <memory>

#include "core/net.h"
#include "cuda/kernels.h"
#include "cuda/runtime.h"

namespace towers::cuda {

// Scratch memory of a plan: its layers run one after the other and share it.
struct Workspace {
  std::size_t bytes = 0;
  void* data = nullptr;
};

struct LayerSetting {
  int batch = 0;
  Extent input, output;  // of one image
  bool training = false;
  bool relu_input = false;  // the input is the output of a relu
  bool allow_tf32 = false, deterministic = false, direct = false;

  // Device memory. Weights are HWIO or [inputs][outputs].
  const float *weights = nullptr, *biases = nullptr;
  float *d_weights = nullptr, *d_biases = nullptr;
  float* output_values = nullptr;  // [batch][output]
  float* d_output = nullptr;       // [batch][output]
  float* d_input = nullptr;        // [batch][input], null where nobody asks for it
  DeviceMemory* memory = nullptr;  // for what the layer keeps
  Workspace* workspace = nullptr;  // `bytes` is raised to what the layer needs
  Stream* stream = nullptr;        // to compile on
};

// Calls enqueue on a stream of the plan's device. `input`: [batch][input].
class LayerPlan {
 public:
  virtual ~LayerPlan() = default;
  virtual void forward(Stream& stream, const float* input) = 0;
  virtual void weight_gradient(Stream&, const float* /*input*/) {}
  virtual void input_gradient(Stream& stream, const float* input) = 0;
};

// For all layers but the loss.
std::unique_ptr<LayerPlan> make_layer(const Layer& layer, const LayerSetting& setting);

// Two layers, one after the other, in one pass; null where there is none for them. It writes the
// second one's output and the first one's input gradient; what lies between may stay unwritten.
std::unique_ptr<LayerPlan> make_layer_pair(const Layer& first, const LayerSetting& first_setting,
                                           const Layer& second, const LayerSetting& second_setting);

// The shape of a layer's window of `size` x `size`.
WindowShape window_of(const LayerSetting& setting, int size, int stride);

}  // namespace towers::cuda
