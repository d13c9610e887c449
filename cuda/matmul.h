#pragma once
// The dense layers' three products, compiled for one shape on one device by cuBLASLt. Row-major:
// input [batch][inputs], weights [inputs][outputs], output [batch][outputs].

#include <cstddef>
#include <memory>

#include "cuda/runtime.h"

namespace towers::cuda {

struct MatmulSetting {
  int batch = 0, inputs = 0, outputs = 0;
  bool relu = true;
  bool training = false;
  bool wants_input_gradient = false;
  bool allow_tf32 = false;
};

class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual std::size_t workspace() const = 0;  // bytes
  // output = input * weights + biases, then relu as set.
  virtual void forward(Stream& stream, const float* input, const float* weights,
                       const float* biases, float* output, void* workspace) = 0;
  // d_output is the gradient before the relu.
  virtual void input_gradient(Stream& stream, const float* d_output, const float* weights,
                              float* d_input, void* workspace) = 0;
  // d_biases: sums of d_output over the batch.
  virtual void weight_gradient(Stream& stream, const float* input, const float* d_output,
                               float* d_weights, float* d_biases, void* workspace) = 0;
};

std::unique_ptr<Matmul> make_matmul(const MatmulSetting& setting, DeviceMemory& memory,
                                    Stream& stream);

}  // namespace towers::cuda
