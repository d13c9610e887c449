#pragma once
// Which GPUs take which precision.

#include "core/backend.h"
#include "core/device.h"

namespace towers::cuda {

// Throws Error, with the precisions that it takes, where the GPU has no arithmetic for `precision`.
void check_precision(Precision precision, const Device& gpu);

}  // namespace towers::cuda
