#include "core/net.h"

#include <algorithm>
#include <stdexcept>

namespace towers {
namespace {

int ceil_divide(int a, int b) {
  return (a + b - 1) / b;
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

bool has_relu(const Layer& layer) {
  if (const auto* convolution = std::get_if<Convolution>(&layer.op)) return convolution->relu;
  if (const auto* dense = std::get_if<Dense>(&layer.op)) return dense->relu;
  return false;
}

Extent output_extent(const Layer& layer, Extent input) {
  return std::visit(Overloaded{
                        [&](const Convolution& c) {
                          return Extent{ceil_divide(input.height, c.stride),
                                        ceil_divide(input.width, c.stride), c.outputs};
                        },
                        [&](const MaxPool& p) {
                          return Extent{ceil_divide(input.height, p.stride),
                                        ceil_divide(input.width, p.stride), input.channels};
                        },
                        [&](const LocalResponseNorm&) { return input; },
                        [&](const Dense& d) {
                          return Extent{1, 1, d.outputs};
                        },
                        [&](const SoftmaxLoss&) { return input; },
                    },
                    layer.op);
}

std::vector<Extent> output_extents(const Net& net) {
  std::vector<Extent> extents;
  Extent extent = net.input;
  for (const Layer& layer : net.layers) {
    const bool is_loss = std::holds_alternative<SoftmaxLoss>(layer.op);
    if (is_loss != (&layer == &net.layers.back()))
      throw std::invalid_argument(net.name + ": the one softmax loss must be the last layer");
    if (is_loss && extent != Extent{1, 1, net.classes})
      throw std::invalid_argument(net.name + ": the loss needs one value per class");
    extent = output_extent(layer, extent);
    if (extent.size() == 0)
      throw std::invalid_argument(net.name + "/" + layer.name + ": no outputs");
    extents.push_back(extent);
  }
  if (extents.empty()) throw std::invalid_argument(net.name + ": no layers");
  return extents;
}

int same_padding_before(int size, int kernel, int stride) {
  const int outputs = ceil_divide(size, stride);
  return std::max(0, (outputs - 1) * stride + kernel - size) / 2;
}

}  // namespace towers
