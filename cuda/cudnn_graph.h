#pragma once
// One pass of a convolution as an operation graph of cuDNN 9, compiled for one device: all engines
// that compute it and may be captured are timed, and the fastest one is kept, in the setting's
// EngineCache too.

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "cuda/conv2d.h"

namespace towers::cuda {

enum class ConvolutionPass {
  forward_fused,  // output = relu(convolution(input) + biases), the relu as set
  forward,        // output = convolution(input)
  input_gradient,
  weight_gradient,
};

// Tensors are NHWC, filters KRSC, stored in fp32, bf16 or fp16, gradients of
// weights too (cuDNN has no engine that writes those wider); sums are float. These are the names
// under which run() is told where they are.
enum class ConvolutionTensor { input, filter, biases, output };

class CudnnGraph {
 public:
  // Null where cuDNN has no engine for this pass in this precision: `refusal` is what it said last.
  static std::unique_ptr<CudnnGraph> compile(const Conv2dSetting& setting, Precision precision,
                                             ConvolutionPass pass, Stream& stream,
                                             std::string& refusal);
  virtual ~CudnnGraph() = default;

  virtual std::string engine() const = 0;     // its name
  virtual std::size_t workspace() const = 0;  // bytes
  // Enqueues. `tensors`: device memory of every tensor that the pass reads or writes.
  virtual void run(Stream& stream,
                   std::initializer_list<std::pair<ConvolutionTensor, const void*>> tensors,
                   void* workspace) = 0;
};

// All that decides which engine is the fastest, on a GPU described by `gpu`, in a line.
std::string engine_key(const std::string& gpu, const Conv2dSetting& setting, Precision precision,
                       ConvolutionPass pass);

// Names of the engines that cuDNN offers on a GPU that need not be there. device_properties: what
// cuDNN 9.8 and later writes of a device, as JSON (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
// refusal: what cuDNN said of the last one that it refused; may be null.
std::vector<std::string> engines_for(const Conv2dSetting& setting, Precision precision,
                                     ConvolutionPass pass, const std::string& device_properties,
                                     std::string* refusal = nullptr);
// Whether the engine of that name is found among them and builds.
bool has_engine(const Conv2dSetting& setting, Precision precision, ConvolutionPass pass,
                const std::string& device_properties, const std::string& name);

}  // namespace towers::cuda
