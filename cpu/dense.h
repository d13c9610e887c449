#pragma once
// A dense layer over a whole batch.

#include <memory>
#include <span>
#include <string>

#include "core/net.h"
#include "core/variables.h"
#include "cpu/spatial_layer.h"
#include "cpu/stage.h"

namespace towers::cpu {

// By setting.arithmetic.products: out = in * weights + biases, then the layer's relu, if any. in:
// [images][inputs], weights: [inputs][outputs], out: [images][outputs], their gradients alike; with
// setting.relu_input d_in is zero where `in` is not positive. `variables` stay as they are from
// prepare until the step is over.
std::unique_ptr<Stage> make_dense(const Layer& layer, std::size_t inputs, const Variable& weights,
                                  const Variable& biases, const LayerSetting& setting);

// gradient += weight_decay * weights, on all threads.
void add_weight_decay(const Variable& weights, const LayerSetting& setting,
                      std::span<const float> variables, std::span<float> gradients);

}  // namespace towers::cpu
