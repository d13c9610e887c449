#pragma once
// Convolutions and dense layers by oneDNN, with bf16 operands and fp32 sums: where the build has it
// and the processor multiplies bf16 (AVX512_BF16, AMX).
//
// Each of the pool's threads calls primitives of its own share of the work, which are compiled for
// one thread. What a call sums over does not depend on the number of threads, so neither do the
// bytes; they are those of one version of oneDNN on one kind of processor.

#include <memory>
#include <string>

#include "core/net.h"
#include "core/variables.h"
#include "cpu/spatial_layer.h"
#include "cpu/stage.h"

namespace towers::cpu {

// Why there are no such products here; empty where there are.
std::string why_no_onednn();
std::string onednn_version();  // "oneDNN 2.6.3"
bool onednn_has_amx();         // whether it multiplies in AMX's tiles

// As make_conv2d and make_dense. Throw Error where oneDNN refuses.
std::unique_ptr<SpatialLayer> make_onednn_conv2d(const Convolution& convolution,
                                                 const Extent& input, const Extent& output,
                                                 const Variable& weights, const Variable& biases,
                                                 const LayerSetting& setting);
std::unique_ptr<Stage> make_onednn_dense(const Layer& layer, std::size_t inputs,
                                         const Variable& weights, const Variable& biases,
                                         const LayerSetting& setting);

}  // namespace towers::cpu
