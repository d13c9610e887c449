#include "core/operations.h"

namespace towers {
namespace {

double forward_operations(const Layer& layer, const Extent& input, const Extent& output) {
  double inputs_of_an_output = 0;
  if (const auto* convolution = std::get_if<Convolution>(&layer.op))
    inputs_of_an_output =
        static_cast<double>(convolution->kernel) * convolution->kernel * input.channels;
  else if (std::holds_alternative<Dense>(layer.op))
    inputs_of_an_output = static_cast<double>(input.size());
  return 2 * inputs_of_an_output * static_cast<double>(output.size());
}

}  // namespace

std::vector<LayerOperations> layer_operations(const Net& net) {
  const std::vector<Extent> extents = output_extents(net);
  std::vector<LayerOperations> operations;
  for (std::size_t l = 0; l < net.layers.size(); ++l) {
    const double forward =
        forward_operations(net.layers[l], l == 0 ? net.input : extents[l - 1], extents[l]);
    operations.push_back({forward, l == 0 ? forward : 2 * forward});
  }
  return operations;
}

double step_operations(const Net& net) {
  double sum = 0;
  for (const LayerOperations& layer : layer_operations(net)) sum += layer.step();
  return sum;
}

}  // namespace towers
