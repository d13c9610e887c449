#pragma once
// The GPUs of this process.

#include <vector>

#include "core/device.h"

namespace towers::cuda {

// All that CUDA_VISIBLE_DEVICES leaves, in its order: index is CUDA's ordinal. Throws Error where
// there is none or the driver is too old, with what to do. Makes no CUDA context where the driver's
// management library is there: a run must not take memory of GPUs that it does not use.
std::vector<Device> list_devices();

}  // namespace towers::cuda
