#pragma once
// A convolution compiled for one shape on one device: cuDNN where it has an engine, else the direct
// kernels. Tensors are NHWC, weights HWIO as in the flat buffer.

#include <cstddef>
#include <memory>
#include <string>

#include "cuda/kernels.h"
#include "cuda/runtime.h"
#include "cuda/storage.h"

namespace towers::cuda {

class EngineCache;

struct Conv2dSetting {
  WindowShape shape;
  bool relu = true;
  bool training = false;  // the gradients will be asked for
  bool wants_input_gradient = false;
  bool allow_tf32 = false;
  bool deterministic = false;
  bool direct = false;             // --convolution=direct
  EngineCache* engines = nullptr;  // where fastest engines are kept; null: they are not
};

// Tensors and weights are stored as T, gradients of weights as its wide type.
// Calls enqueue on the stream handed in, of the device it was made for, and may be captured.
template <class T>
class Conv2d {
 public:
  virtual ~Conv2d() = default;
  virtual std::string engine() const = 0;  // what computes each pass, for who debugs
  // The passes that cuDNN was to compute and has no engine for, which costs much time; or empty.
  virtual std::string without_engine() const = 0;
  // What cuDNN says of passes that it does not compute as they were wanted, in a line; or empty.
  virtual std::string refusals() const = 0;
  // Bytes of scratch memory, aligned to 256, that forward and the gradients may use.
  virtual std::size_t workspace() const = 0;
  // output = convolution(input) + biases, then relu as set. The input gradient of the same step
  // reads what this keeps of the weights.
  virtual void forward(Stream& stream, const T* input, const T* weights, const T* biases, T* output,
                       void* workspace) = 0;
  virtual void input_gradient(Stream& stream, const T* d_output, const T* weights, T* d_input,
                              void* workspace) = 0;
  virtual void weight_gradient(Stream& stream, const T* input, const T* d_output,
                               Wide<T>* d_weights, void* workspace) = 0;
};

// `memory` keeps what lives as long as the plan. Throws Error where the library fails.
template <class T>
std::unique_ptr<Conv2d<T>> make_conv2d(const Conv2dSetting& setting, DeviceMemory& memory,
                                       Stream& stream);

}  // namespace towers::cuda
