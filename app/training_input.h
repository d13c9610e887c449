#pragma once
// --input: where training batches are made.

#include <string>

#include "core/backend.h"
#include "data/dataset.h"

namespace towers::app {

// Settles the flag (auto, host, device) and tells the towers. On GPUs host means that the host
// gathers records and the GPUs distort them, device that they hold the data set as well; auto is
// device where they have room for it. CPUs take images, which the host distorts. Throws Error where
// device is asked for and cannot be.
InputForm choose_input(const std::string& flag, const Backend& backend, Towers& towers,
                       const data::Dataset& dataset, std::uint64_t seed);

// "host, 1 thread", "device, 147 MiB on each GPU": for the start table.
std::string input_text(InputForm form, const data::Dataset& dataset, int threads);

}  // namespace towers::app
