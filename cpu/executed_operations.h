#pragma once
// How much arithmetic the CPU really does for a step, where core/operations.h counts direct
// convolution: Winograd's products and transforms.

#include <string>
#include <vector>

#include "core/net.h"
#include "core/operations.h"

namespace towers::cpu {

// Of each layer, for an example of a batch of `batch_size`, with fp32 and `convolution` as
// CompileOptions have it. What vectors and tiles compute beyond the edges counts nothing.
// Throws as parse_convolution_method does.
std::vector<LayerOperations> executed_operations(const Net& net, const std::string& convolution,
                                                 int batch_size);

}  // namespace towers::cpu
