#pragma once
// --input: where training batches are made.

#include <cstdint>
#include <memory>
#include <string>

#include "cli/options.h"
#include "core/backend.h"
#include "data/dataset.h"
#include "data/pipeline.h"

namespace towers::app {

// Settles the flag (auto, host, device) and tells the towers. On GPUs host means that the host
// gathers records and the GPUs distort them, device that they hold the data set as well; auto is
// device where they have room for it. CPUs take images, which the host distorts. Throws Error where
// device is asked for and cannot be.
InputForm choose_input(const std::string& flag, const Backend& backend, Towers& towers,
                       const data::Dataset& dataset, std::uint64_t seed);

// Opens a stream of batches for --num_gpus towers, which take them in turn with those of other
// readers. The caller gives the stream's seed, first_position, readers and form (as settled above);
// the rest of it follows from the flags.
std::unique_ptr<data::Pipeline> open_pipeline(const cli::TrainOptions& options, Backend& backend,
                                              const data::Dataset& dataset,
                                              data::PipelineOptions stream);

// "host, 1 thread", "device, 153.7 MB on each GPU": for the start table.
std::string input_text(InputForm form, const data::Dataset& dataset, int threads);

}  // namespace towers::app
