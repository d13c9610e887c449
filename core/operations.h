#pragma once
// How much arithmetic a net is: floating-point operations per example (a multiply-add is two),
// counted as direct convolution whatever a backend really does, so that rates compare. What is not
// a convolution or a dense layer counts nothing: it is a few percent.

#include <vector>

#include "core/net.h"

namespace towers {

struct LayerOperations {
  double forward = 0;
  double backward = 0;  // gradients of weights, and of the input but for the first layer

  double step() const { return forward + backward; }
};

// Of each layer, in order.
std::vector<LayerOperations> layer_operations(const Net& net);

// Bytes that each layer reads and writes for a batch in fp32: activations, gradients and variables,
// each once a pass, as if no cache kept anything from layer to layer.
std::vector<LayerOperations> layer_bytes(const Net& net, int batch_size);

// Of a training step: 105 million for CIFAR-10's net.
double sum_of_steps(const std::vector<LayerOperations>& layers);

}  // namespace towers
