#include "core/operations.h"

#include "core/variables.h"

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

std::vector<LayerOperations> layer_bytes(const Net& net, int batch_size) {
  const std::vector<Extent> extents = output_extents(net);
  std::vector<double> variables(net.layers.size());
  const VariableLayout layout(net);
  for (const Variable& v : layout.variables()) variables[v.layer] += static_cast<double>(v.size);

  std::vector<LayerOperations> bytes;
  for (std::size_t l = 0; l < net.layers.size(); ++l) {
    const double in =
        static_cast<double>((l == 0 ? net.input : extents[l - 1]).size()) * batch_size;
    const double out = static_cast<double>(extents[l].size()) * batch_size;
    const double d_in = l == 0 ? 0 : in;
    bytes.push_back({sizeof(float) * (in + variables[l] + out),
                     sizeof(float) * (in + out + 2 * variables[l] + d_in)});
  }
  return bytes;
}

double sum_of_steps(const std::vector<LayerOperations>& layers) {
  double sum = 0;
  for (const LayerOperations& layer : layers) sum += layer.step();
  return sum;
}

}  // namespace towers
