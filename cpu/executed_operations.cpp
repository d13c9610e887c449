#include "cpu/executed_operations.h"

#include "cpu/arithmetic.h"
#include "cpu/chain.h"
#include "cpu/winograd.h"
#include "cpu/winograd_matrices.h"

namespace towers::cpu {
namespace {

template <class W>
LayerOperations winograd_operations(const Convolution& convolution, const Extent& input,
                                    bool wants_input_gradient, int batch_size) {
  constexpr int m = W::kOutputs;
  constexpr double spread = transform_operations(transposed(W::output()));
  constexpr double back = transform_operations(folded(W::output()));
  constexpr double weights = transform_operations(W::kernel());
  constexpr double gather = transform_operations(folded(transposed(W::kernel())));

  const int rows = (input.height + m - 1) / m, columns = (input.width + m - 1) / m;
  const double tiles = static_cast<double>(rows) * columns;
  const double inputs = input.channels, outputs = convolution.outputs;
  double image = transform_operations(W::input());
  // A narrow image's columns are transformed once for all tiles that share them.
  if (m == NarrowWinogradKernels::kOutputs && input.channels == NarrowWinogradKernels::kChannels &&
      !wants_input_gradient)
    image *= (W::kTile + m + (W::kTile - m) / static_cast<double>(columns)) / (2 * W::kTile);
  const double products = 2 * tiles * W::kTile * W::kTile * inputs * outputs;
  // Once a step, and once for each block of images.
  const double of_weights = inputs * outputs * weights / batch_size;
  const double of_gradients = inputs * outputs * gather * blocks_of(batch_size) / batch_size;

  LayerOperations operations;
  operations.forward = products + tiles * (inputs * image + outputs * back) + of_weights;
  operations.backward = products + tiles * (inputs * image + outputs * spread) + of_gradients;
  if (wants_input_gradient)
    operations.backward += products + tiles * (outputs * image + inputs * back) + of_weights;
  return operations;
}

}  // namespace

std::vector<LayerOperations> executed_operations(const Net& net, const CompileOptions& options) {
  const Arithmetic arithmetic = choose_arithmetic(options);
  const std::vector<Extent> extents = output_extents(net);
  std::vector<LayerOperations> operations = layer_operations(net);
  if (arithmetic.products == Products::bf16) return operations;  // oneDNN convolves directly
  for (std::size_t l = 0; l < net.layers.size(); ++l) {
    const auto* layer = std::get_if<Convolution>(&net.layers[l].op);
    if (layer == nullptr) continue;
    const Extent& input = l == 0 ? net.input : extents[l - 1];
    const ConvolutionMethod method =
        choose_convolution_method(arithmetic.convolution, *layer, input);
    if (method == ConvolutionMethod::winograd4)
      operations[l] = winograd_operations<Winograd<4, 5>>(*layer, input, l > 0, options.batch_size);
    else if (method == ConvolutionMethod::winograd2)
      operations[l] = winograd_operations<Winograd<2, 5>>(*layer, input, l > 0, options.batch_size);
  }
  return operations;
}

}  // namespace towers::cpu
