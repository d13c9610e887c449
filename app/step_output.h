#pragma once
// What a training loop shows of its steps, alone or as a worker of a cluster.

#include <cstdint>
#include <string>

#include "app/evaluation.h"
#include "app/run_files.h"
#include "app/step_clock.h"
#include "app/summaries.h"
#include "app/tower_set.h"
#include "cli/options.h"
#include "core/schedule.h"

namespace towers::app {

constexpr int kStopInOrder = -1;

// Why a process wants no further step: a signal, kStopInOrder (time is up, or nobody reads stdout
// any more), or 0.
int reason_to_stop(const cli::TrainOptions& options, const StepClock& clock);

struct StepOutput {
  const cli::TrainOptions& options;
  const Schedule& schedule;
  TowerSet& set;
  RunFiles* files;  // null: of a process that keeps none

  // The step line, and a row of the metrics log.
  void display(std::int64_t step, double epochs, StepClock& clock) const;
  // The summaries of a step that was made with keep_activations.
  void summarize(std::int64_t step, Summaries& summaries) const;
  // Of an evaluation after `step`; nothing of one that was interrupted.
  void precision(std::int64_t step, const Precision1& result) const;
  // Ends the run with what is known of the value that is not finite, and the last good checkpoint.
  [[noreturn]] void diverged(std::int64_t step) const;
  // The closing table; then an Error where saving failed, or, before --max_steps, how to go on.
  // last_step: the last one made.
  void end(std::int64_t last_step, double epochs, StepClock& clock) const;
};

}  // namespace towers::app
