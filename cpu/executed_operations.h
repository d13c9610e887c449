#pragma once
// How much arithmetic the CPU really does for a step, where core/operations.h counts direct
// convolution: Winograd's products and transforms.

#include <vector>

#include "core/backend.h"
#include "core/net.h"
#include "core/operations.h"

namespace towers::cpu {

// Of each layer, for an example of a batch, by options.batch_size, precision and convolution. What
// vectors and tiles compute beyond the edges counts nothing. Throws as choose_arithmetic does.
std::vector<LayerOperations> executed_operations(const Net& net, const CompileOptions& options);

}  // namespace towers::cpu
