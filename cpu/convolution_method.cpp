#include "cpu/convolution_method.h"

#include "core/error.h"

namespace towers::cpu {

ConvolutionMethod parse_convolution_method(const std::string& name) {
  if (name == "auto") return ConvolutionMethod::automatic;
  if (name == "direct") return ConvolutionMethod::direct;
  if (name == "winograd2") return ConvolutionMethod::winograd2;
  if (name == "winograd4") return ConvolutionMethod::winograd4;
  throw UsageError("--convolution=" + name +
                   " is unknown; there is auto, direct, winograd4, winograd2");
}

ConvolutionMethod choose_convolution_method(ConvolutionMethod wish, const Convolution& convolution,
                                            const Extent& input) {
  if (convolution.kernel != 5 || convolution.stride != 1) return ConvolutionMethod::direct;
  if (wish != ConvolutionMethod::automatic) return wish;
  return input.channels >= 16 ? ConvolutionMethod::winograd4 : ConvolutionMethod::direct;
}

}  // namespace towers::cpu
