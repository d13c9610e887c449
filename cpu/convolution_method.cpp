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
  // Multiplications per pair of channels. F(4x4, 5x5) takes 64 for a whole tile of 16 outputs, and
  // its transforms take about as long. F(2x2, 5x5) has never been the fastest.
  const int direct = 25 * input.height * input.width;
  const int winograd4 = 64 * ((input.height + 3) / 4) * ((input.width + 3) / 4);
  return 2 * winograd4 < direct ? ConvolutionMethod::winograd4 : ConvolutionMethod::direct;
}

}  // namespace towers::cpu
