#pragma once
// `towers bench`: one combination of the flags, and how it is measured.

#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"
#include "core/backend.h"
#include "core/net.h"
#include "core/statistics.h"
#include "data/dataset.h"

namespace towers::app {

// Settings that a row of the sweep stands for.
struct BenchCase {
  // Of the whole command, with this combination's batch_size, precision, compute_threads and
  // input_threads.
  cli::BenchOptions options;
  int towers = 1;
  std::string convolution;
};

// In the order in which they are measured: the last list of --batch_size, --num_gpus, --precision,
// --convolution, --compute_threads, --input_threads changes fastest. Throws UsageError where a list
// has several values that --what does not depend on.
std::vector<BenchCase> bench_cases(const cli::BenchOptions& options);

struct Measurement {
  std::string layer;           // of --what=layers, else empty
  RateStatistics rates;        // examples of all towers per second
  std::int64_t steps = 0;      // that were measured
  double seconds = 0;          // that they took
  double forward_seconds = 0;  // of a step, in a layer
  double backward_seconds = 0;
  double operations = 0;   // floating-point, of one example, counted as direct convolution
  double executed = 0;     // the same as the backend executes them; 0 where that is not known
  double bytes = 0;        // that a step's layers read and write
  double input_share = 0;  // of the time, waited for input
};

// Training steps on one batch per tower that stays where it is.
Measurement measure_step(const BenchCase& c, const Net& net, Backend& backend);
// Batches made from `dataset`, and thrown away.
Measurement measure_input(const BenchCase& c, const data::Dataset& dataset, Backend& backend);
// Both together, as in `towers train` without its lines, summaries and checkpoints.
Measurement measure_train(const BenchCase& c, const Net& net, const data::Dataset& dataset,
                          Backend& backend);

// Of a tower's forward and backward pass: each layer, "rest", and all of it. CPU alone.
std::vector<Measurement> measure_layers(const BenchCase& c, const Net& net, Backend& backend);

}  // namespace towers::app
