#pragma once
// The dense layers' three products, compiled for one shape on one device by cuBLASLt. Row-major:
// input [batch][inputs], weights [inputs][outputs], output [batch][outputs].

#include <cstddef>
#include <memory>
#include <string>

#include "cuda/runtime.h"
#include "cuda/storage.h"

namespace towers::cuda {

struct MatmulSetting {
  int batch = 0, inputs = 0, outputs = 0;
  bool relu = true;
  bool training = false;
  bool wants_input_gradient = false;
  bool allow_tf32 = false;
  const void* input_signs = nullptr;  // signs() of the layer whose output the input is; may be null
};

// In: what input, weights and d_output are stored as. Out: output and biases, In or its wide type.
template <class In, class Out>
class Matmul {
 public:
  virtual ~Matmul() = default;
  virtual std::string engine() const = 0;  // what computes it, for who debugs
  // What cuBLASLt says of epilogues that it does not compute, in a line; or empty.
  virtual std::string refusals() const = 0;
  virtual std::size_t workspace() const = 0;  // bytes
  // Device memory in which forward, with training and a relu, keeps which outputs are above zero,
  // in cuBLASLt's own form; null where it does not.
  virtual const void* signs() const = 0;
  // Whether input_gradient, of such signs, also passes the relu that the input has come through.
  virtual bool passes_input_relu() const = 0;
  // output = input * weights + biases, then relu as set.
  virtual void forward(Stream& stream, const In* input, const In* weights, const Out* biases,
                       Out* output, void* workspace) = 0;
  // d_output is the gradient before the relu.
  virtual void input_gradient(Stream& stream, const In* d_output, const In* weights, In* d_input,
                              void* workspace) = 0;
  // d_biases: sums of d_output over the batch.
  virtual void weight_gradient(Stream& stream, const In* input, const In* d_output,
                               Wide<In>* d_weights, Wide<In>* d_biases, void* workspace) = 0;
};

// `memory` keeps what lives as long as the plan.
template <class In, class Out>
std::unique_ptr<Matmul<In, Out>> make_matmul(const MatmulSetting& setting, DeviceMemory& memory,
                                             Stream& stream);

// For explicit instantiation.
#define TOWERS_FOR_EACH_PRODUCT(X) \
  X(float, float)                  \
  X(double, double)                \
  X(__half, __half)                \
  X(__half, float)                 \
  X(__nv_bfloat16, __nv_bfloat16)  \
  X(__nv_bfloat16, float)

}  // namespace towers::cuda
