#pragma once
// The convolutional net of TensorFlow's CIFAR-10 tutorial: 1,068,298 trainable values, 24x24x3 in,
// 10 classes out.

#include "core/net.h"

namespace towers {

// `weight_decay` is the decay of local3 and local4 (0.004 in the tutorial).
Net cifar10_net(double weight_decay = 0.004);

}  // namespace towers
