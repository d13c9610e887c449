#pragma once
// --eval_every: the test set, evaluated again and again beside the training.

#include <memory>
#include <span>

#include "app/evaluation.h"
#include "cli/options.h"
#include "core/backend.h"
#include "data/dataset.h"

namespace towers::app {

class PeriodicEvaluation {
 public:
  // Loads the test set; the net is compiled at the first run. `backend` and `net` must outlive it.
  PeriodicEvaluation(const cli::TrainOptions& options, Backend& backend, const Net& net);

  // Of these variables; 0 examples when a signal came in between.
  Precision1 run(std::span<const float> variables);

 private:
  Backend& backend_;
  const Net& net_;
  const int batch_size_;
  const Precision precision_;
  const data::Dataset test_set_;
  std::unique_ptr<Evaluation> evaluation_;
};

}  // namespace towers::app
