#pragma once
// Everything one training run is made of, made in order: what can be wrong is found before anything
// of a former run is deleted and before step 1.

#include <cstdint>
#include <memory>

#include "app/periodic_evaluation.h"
#include "app/ranks.h"
#include "app/run_files.h"
#include "app/tower_set.h"
#include "cli/options.h"
#include "cli/parse.h"
#include "data/dataset.h"
#include "data/pipeline.h"

namespace towers::app {

class TrainingRun {
 public:
  // The pre-flight check: devices and placement, the folder, the restored or initial variables,
  // space for the checkpoints, the data and its labels. Throws Error or UsageError. `ranks` must
  // outlive it; what is kept in train_dir is the leader's.
  TrainingRun(const cli::TrainOptions& options, const cli::Parsed& parsed, Ranks& ranks);

  // A run that was resumed at or past --max_steps has nothing to do, and writes nothing.
  bool finished() const { return first_step() >= options_.max_steps; }
  // Deletes a former run's files, opens the event file, prints the start-up table, and one
  // "running: tower_N" line per tower.
  void start();

  const cli::TrainOptions& options() const { return options_; }
  const Schedule& schedule() const { return schedule_; }
  TowerSet& set() { return set_; }
  Towers& towers() { return *set_.towers; }
  Ranks& ranks() { return ranks_; }
  RunFiles* files() { return files_.get(); }  // null on ranks that do not lead
  data::Pipeline& pipeline() { return *pipeline_; }
  std::int64_t first_step() const { return start_.step; }
  int all_towers() const { return options_.num_gpus * ranks_.count(); }
  std::int64_t examples_per_step() const {
    return static_cast<std::int64_t>(options_.batch_size) * all_towers();
  }

  // Position in the example stream after `step`, and the epochs that makes.
  std::uint64_t position_after(std::int64_t step) const;
  double epochs_after(std::int64_t step) const;

  // Saves model.ckpt-STEP in the background, unless it is saved already.
  void save(std::int64_t step);
  // Precision of the moving averages on the test set; 0 examples when a signal came in between.
  Precision1 evaluate();
  // After evaluate(): saves what gave `result` to train_dir/best where no evaluation of the run
  // gave more.
  void keep_if_best(std::int64_t step, const Precision1& result);

 private:
  // Where all ranks begin.
  struct Start {
    std::uint64_t seed = 0;
    std::int64_t step = 0;
    std::uint64_t position = 0;  // in the example stream
  };
  void restore(const std::string& flagfile);

  cli::TrainOptions options_;
  Ranks& ranks_;
  Schedule schedule_;
  TowerSet set_;
  std::unique_ptr<RunFiles> files_;
  Start start_;
  data::Dataset dataset_;
  InputForm input_ = InputForm::images;
  std::unique_ptr<data::Pipeline> pipeline_;
  std::unique_ptr<PeriodicEvaluation> evaluation_;  // with --eval_every only
};

}  // namespace towers::app
