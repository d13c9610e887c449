#pragma once
// The layers of a plan on one device, whose tensors are stored as T. A gradient d_output is that
// before the layer's own relu: who writes a d_input applies the relu of the layer below to it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/net.h"
#include "cuda/kernels.h"
#include "cuda/runtime.h"

namespace towers::cuda {

class EngineCache;

// Scratch memory of a plan: its layers run one after the other and share it.
struct Workspace {
  std::size_t bytes = 0;
  void* data = nullptr;
};

template <class T>
struct LayerSetting {
  int batch = 0;
  Extent input, output;  // of one image
  bool training = false;
  bool relu_input = false;  // the input is the output of a relu
  bool allow_tf32 = false, deterministic = false, direct = false;
  EngineCache* engines = nullptr;  // of convolutions; null: none are kept

  // Device memory. Weights are HWIO or [inputs][outputs].
  const T *weights = nullptr, *biases = nullptr;
  Wide<T>*d_weights = nullptr, *d_biases = nullptr;
  T* output_values = nullptr;         // [batch][output]; null: not kept within a pair
  T* d_output = nullptr;              // [batch][output]; null: within a pair
  T* d_input = nullptr;               // [batch][input]; null where nobody asks for it
  const void* input_signs = nullptr;  // LayerPlan::signs of the layer below
  // Of a dense layer that gives the logits: written in place of output_values, with these biases.
  Wide<T>* logits = nullptr;
  const Wide<T>* wide_biases = nullptr;
  DeviceMemory* memory = nullptr;  // for what the layer keeps
  Workspace* workspace = nullptr;  // `bytes` is raised to what the layer needs
  Stream* stream = nullptr;        // to compile on
};

// Calls enqueue on a stream of the plan's device. `input`: [batch][input].
template <class T>
class LayerPlan {
 public:
  virtual ~LayerPlan() = default;
  virtual void forward(Stream& stream, const T* input) = 0;
  virtual void weight_gradient(Stream&, const T* /*input*/) {}
  virtual void input_gradient(Stream& stream, const T* input) = 0;
  virtual std::string engine() const { return ""; }          // what computes it, for who debugs
  virtual std::string without_engine() const { return ""; }  // Conv2d's
  virtual std::string refusals() const { return ""; }        // Conv2d's, Matmul's
  // Where forward keeps which outputs are above zero (Matmul::signs); null where it does not.
  virtual const void* signs() const { return nullptr; }
};

// For all layers but the loss.
template <class T>
std::unique_ptr<LayerPlan<T>> make_layer(const Layer& layer, const LayerSetting<T>& setting);

// Whether two layers, one after the other, run in one pass, and what of the first one's output that
// pass writes: its gradient it never does.
enum class Pairing { none, output_unwritten, output_written };
template <class T>
Pairing pairing_of(const Layer& first, const LayerSetting<T>& first_setting, const Layer& second,
                   const LayerSetting<T>& second_setting);
// The two in one pass, where there is one for them. It writes the second one's output and the first
// one's input gradient.
template <class T>
std::unique_ptr<LayerPlan<T>> make_layer_pair(const Layer& first,
                                              const LayerSetting<T>& first_setting,
                                              const Layer& second,
                                              const LayerSetting<T>& second_setting);

// A pool's winners, one byte for each output value; none where no backward pass follows.
template <class T>
std::span<std::uint8_t> allocate_winners(const LayerSetting<T>& pool) {
  return pool.memory->template allocate<std::uint8_t>(
      pool.training ? static_cast<std::size_t>(pool.batch) * pool.output.size() : 0);
}

// The shape of a layer's window of `size` x `size`.
template <class T>
WindowShape window_of(const LayerSetting<T>& setting, int size, int stride) {
  return {setting.batch,
          setting.input,
          setting.output,
          size,
          stride,
          same_padding_before(setting.input.height, size, stride),
          same_padding_before(setting.input.width, size, stride)};
}

}  // namespace towers::cuda
