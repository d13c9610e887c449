#pragma once
// On which devices a rank's towers run.

#include "app/ranks.h"
#include "cli/options.h"
#include "core/backend.h"

namespace towers::app {

// Places --num_gpus towers on devices of the backend; of several ranks that see the same GPUs, each
// on its share of them. Throws Error: too few devices, ranks on unlike devices or on one GPU.
Placement place(const cli::TrainOptions& options, const Backend& backend, Ranks* ranks);

}  // namespace towers::app
