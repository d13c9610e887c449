#pragma once
// What a plan tells while its backward pass goes.

#include <cstddef>
#include <functional>

namespace towers::cpu {

// That the gradients of `layer` and those behind it are made, and the batch's mean cross-entropy.
// Only layers at which a stage begins are named; every layer is one in double precision.
using LayerDone = std::function<void(std::size_t layer, double loss)>;

}  // namespace towers::cpu
