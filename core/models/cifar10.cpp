#include "core/models/cifar10.h"

namespace towers {

Net cifar10_net(double weight_decay) {
  const LocalResponseNorm norm{.depth_radius = 4, .bias = 1.0, .alpha = 0.001 / 9.0, .beta = 0.75};
  const MaxPool pool{.size = 3, .stride = 2};
  return Net{.name = "cifar10",
             .input = {24, 24, 3},
             .classes = 10,
             .layers = {
                 {"conv1", Convolution{.kernel = 5, .outputs = 64}, {.weights_stddev = 5e-2}},
                 {"pool1", pool},
                 {"norm1", norm},
                 {"conv2", Convolution{.kernel = 5, .outputs = 64}, {5e-2, 0.1, 0}},
                 {"norm2", norm},
                 {"pool2", pool},
                 {"local3", Dense{.outputs = 384}, {0.04, 0.1, weight_decay}},
                 {"local4", Dense{.outputs = 192}, {0.04, 0.1, weight_decay}},
                 {"softmax_linear", Dense{.outputs = 10, .relu = false}, {1 / 192.0, 0, 0}},
                 {"cross_entropy", SoftmaxLoss{}},
             }};
}

}  // namespace towers
