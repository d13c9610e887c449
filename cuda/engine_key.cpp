// The name under which a convolution's fastest engine is kept. Knows nothing of cuDNN.

#include <string>

#include "cuda/cudnn_graph.h"

namespace towers::cuda {
namespace {

const char* name_of_pass(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::forward_fused:
      return "forward with biases";
    case ConvolutionPass::forward:
      return "forward";
    case ConvolutionPass::input_gradient:
      return "input gradient";
    case ConvolutionPass::weight_gradient:
      break;
  }
  return "weight gradient";
}

}  // namespace

std::string engine_key(const std::string& gpu, const Conv2dSetting& setting, Precision precision,
                       ConvolutionPass pass) {
  const WindowShape& s = setting.shape;
  const auto extent = [](const Extent& e) {
    return std::to_string(e.height) + "x" + std::to_string(e.width) + "x" +
           std::to_string(e.channels);
  };
  std::string key = gpu + ", " + name_of_pass(pass);
  if (pass == ConvolutionPass::forward_fused && setting.relu) key += " with relu";
  key += ", " + to_string(precision);
  if (precision == Precision::fp32 && setting.allow_tf32) key += " as tf32";
  return key + ", " + std::to_string(s.batch) + " x " + extent(s.input) + " to " +
         extent(s.output) + ", window " + std::to_string(s.size) + " by " +
         std::to_string(s.stride) + " from " + std::to_string(-s.pad_top) + " " +
         std::to_string(-s.pad_left);
}

}  // namespace towers::cuda
