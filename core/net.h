#pragma once
// A model as data: a list of layers with shapes, initial values and TensorFlow's names. Backends
// compile it (core/backend.h); nothing here computes.

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace towers {

// One example's activations: height x width x channels, stored NHWC. A vector is 1 x 1 x channels.
struct Extent {
  int height = 1;
  int width = 1;
  int channels = 1;

  std::size_t size() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels);
  }
  bool operator==(const Extent&) const = default;
};

// Square kernel, SAME padding as TensorFlow's: the odd row of padding is at the bottom and right.
// Weights are HWIO: [kernel, kernel, inputs, outputs].
struct Convolution {
  int kernel = 5;
  int stride = 1;
  int outputs = 0;
  bool relu = true;
};

// SAME padding; the padding never wins.
struct MaxPool {
  int size = 3;
  int stride = 2;
};

// Across channels: y = x / (bias + alpha * sum of x^2 over 2 * depth_radius + 1 channels)^beta.
// Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 3.3, with
// TensorFlow's alpha (not divided by the window).
struct LocalResponseNorm {
  int depth_radius = 4;
  double bias = 1.0;
  double alpha = 0.001 / 9.0;
  double beta = 0.75;
};

// Flattens its input (HWC) and multiplies it by weights [inputs, outputs].
struct Dense {
  int outputs = 0;
  bool relu = true;
};

// Mean softmax cross-entropy over the batch; its input has one channel per class.
struct SoftmaxLoss {};

// Initial values and decay of a layer's "weights" and "biases".
struct Parameters {
  double weights_stddev = 0;  // truncated normal: redrawn beyond 2 stddev
  double biases = 0;          // constant
  double weight_decay = 0;    // adds weight_decay * sum(weights^2) / 2 to the loss
};

struct Layer {
  std::string name;
  std::variant<Convolution, MaxPool, LocalResponseNorm, Dense, SoftmaxLoss> op;
  Parameters parameters{};  // of Convolution and Dense alone
};

struct Net {
  std::string name;
  Extent input;
  int classes = 0;
  std::vector<Layer> layers;  // ends with SoftmaxLoss
};

// Whether `layer` ends in a relu of its own.
bool has_relu(const Layer& layer);

// Output extent of `layer` for an input of `input`. SoftmaxLoss passes its input through.
Extent output_extent(const Layer& layer, Extent input);

// Extent of every layer's output, in order. Throws std::invalid_argument on a net that does not fit
// together (no outputs, a loss that is not last or whose input is not 1 x 1 x classes).
std::vector<Extent> output_extents(const Net& net);

// Rows (or columns) of SAME padding before the first one, for TensorFlow's rule.
int same_padding_before(int size, int kernel, int stride);

}  // namespace towers
