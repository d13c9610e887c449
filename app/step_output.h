#pragma once
// What a training loop shows of its steps, alone or as a worker of a cluster.

#include <cstdint>
#include <string>

#include "app/evaluation.h"
#include "app/run_files.h"
#include "app/step_clock.h"
#include "app/tower_set.h"
#include "cli/options.h"
#include "core/schedule.h"

namespace towers::app {

struct StepOutput {
  const cli::TrainOptions& options;
  const Schedule& schedule;
  Towers& towers;
  RunFiles* files;  // null: of a worker that keeps none

  // The step line, and a row of the metrics log.
  void display(std::int64_t step, double epochs, StepClock& clock) const;
  // Of an evaluation after `step`; nothing of one that was interrupted.
  void precision(std::int64_t step, const Precision1& result) const;
  // Ends the run with what is known of the value that is not finite, and the last good checkpoint.
  [[noreturn]] void diverged(std::int64_t step) const;
  // The closing table; then an Error where saving failed, or, before --max_steps, how to go on.
  // last_step: the last one made.
  void end(std::int64_t last_step, double epochs, StepClock& clock) const;
};

}  // namespace towers::app
