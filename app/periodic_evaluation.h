#pragma once
// --eval_every: the test set, evaluated again and again beside the training.

#include <span>

#include "app/evaluation.h"
#include "cli/options.h"
#include "core/backend.h"
#include "data/dataset.h"

namespace towers::app {

class PeriodicEvaluation {
 public:
  // Loads the test set and compiles the net, before --input=auto looks for what is left of a GPU's
  // memory. `backend` must outlive it.
  PeriodicEvaluation(const cli::TrainOptions& options, Backend& backend, const Net& net);

  // Of these variables; 0 examples when a signal came in between.
  Precision1 run(std::span<const float> variables);

 private:
  const data::Dataset test_set_;
  Evaluation evaluation_;
};

}  // namespace towers::app
