#pragma once
// Layers whose products have bf16 operands where the processor or the build multiplies none: what
// goes in, the weights and the output's gradient are rounded, and the layer of fp32 does the rest.

#include <memory>

#include "cpu/spatial_layer.h"
#include "cpu/stage.h"

namespace towers::cpu {

// As make_conv2d and make_dense.
std::unique_ptr<SpatialLayer> make_emulated_conv2d(const Convolution& convolution,
                                                   const Extent& input, const Extent& output,
                                                   const Variable& weights, const Variable& biases,
                                                   const LayerSetting& setting);
std::unique_ptr<Stage> make_emulated_dense(const Layer& layer, std::size_t inputs,
                                           const Variable& weights, const Variable& biases,
                                           const LayerSetting& setting);

}  // namespace towers::cpu
