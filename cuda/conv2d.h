#pragma once
// A convolution compiled for one shape on one device: cuDNN where it has an engine, else the direct
// kernels. Tensors are NHWC, weights HWIO as in the flat buffer.

#include <cstddef>
#include <memory>
#include <string>

#include "cuda/kernels.h"
#include "cuda/runtime.h"

namespace towers::cuda {

struct Conv2dSetting {
  WindowShape shape;
  bool relu = true;
  bool training = false;  // the gradients will be asked for
  bool wants_input_gradient = false;
  bool allow_tf32 = false;
  bool deterministic = false;
  bool direct = false;  // --convolution=direct
};

// Calls enqueue on the stream handed in, of the device it was made for, and may be captured.
class Conv2d {
 public:
  virtual ~Conv2d() = default;
  virtual std::string engine() const = 0;  // "cuDNN", "direct", for logs and tests
  // Bytes of scratch memory, aligned to 256, that forward and the gradients may use.
  virtual std::size_t workspace() const = 0;
  // output = convolution(input) + biases, then relu as set. The input gradient of the same step
  // reads what this keeps of the weights.
  virtual void forward(Stream& stream, const float* input, const float* weights,
                       const float* biases, float* output, void* workspace) = 0;
  virtual void input_gradient(Stream& stream, const float* d_output, const float* weights,
                              float* d_input, void* workspace) = 0;
  virtual void weight_gradient(Stream& stream, const float* input, const float* d_output,
                               float* d_weights, void* workspace) = 0;
};

// `memory` keeps what lives as long as the plan. Throws Error where the library fails.
std::unique_ptr<Conv2d> make_conv2d(const Conv2dSetting& setting, DeviceMemory& memory,
                                    Stream& stream);

}  // namespace towers::cuda
