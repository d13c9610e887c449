#pragma once
// Everything one training run is made of, made in order: what can be wrong is found before anything
// of a former run is deleted and before step 1.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/evaluation.h"
#include "app/repeated_error.h"
#include "app/run_state.h"
#include "cli/options.h"
#include "cli/parse.h"
#include "core/backend.h"
#include "core/net.h"
#include "core/schedule.h"
#include "core/variables.h"
#include "data/checkpoint_saver.h"
#include "data/dataset.h"
#include "data/event_file.h"
#include "data/metrics_log.h"
#include "data/pipeline.h"
#include "data/run_folder.h"

namespace towers::app {

class TrainingRun {
 public:
  // The pre-flight check: devices and placement, the folder, the data and its labels, space for the
  // checkpoints; then the restored or initial variables. Throws Error or UsageError.
  TrainingRun(const cli::TrainOptions& options, const cli::Parsed& parsed);

  // A run that was resumed at or past --max_steps has nothing to do, and writes nothing.
  bool finished() const { return first_step_ >= options_.max_steps; }
  // Deletes a former run's files, opens the event file, prints the start-up table, and one
  // "running: tower_N" line per tower.
  void start();

  const cli::TrainOptions& options() const { return options_; }
  const Schedule& schedule() const { return schedule_; }
  const Net& net() const { return net_; }
  const VariableLayout& layout() const { return layout_; }
  std::int64_t first_step() const { return first_step_; }
  std::int64_t examples_per_step() const {
    return static_cast<std::int64_t>(options_.batch_size) * options_.num_gpus;
  }
  Towers& towers() { return *towers_; }
  data::Pipeline& pipeline() { return *pipeline_; }
  data::EventFileWriter& events() { return *events_; }
  data::MetricsLog* metrics() { return metrics_.get(); }  // null without --metrics_log
  const data::RunFolder& folder() const { return *folder_; }

  // Position in the example stream after `step`, and the epochs that makes.
  std::uint64_t position_after(std::int64_t step) const;
  double epochs_after(std::int64_t step) const;

  // Saves model.ckpt-STEP in the background, unless it is saved already.
  void save(std::int64_t step);
  // Waits for the last save. Returns its error, empty when it went well.
  std::string finish_saving();
  // Logs an error of writing events; one that repeats itself not every time.
  void say_events_failure(const std::string& error);
  // The last good checkpoint; empty: none.
  std::string last_checkpoint() const { return saver_->latest().string(); }

  // Precision of the moving averages on the test set; 0 examples when a signal came in between.
  Precision1 evaluate();

 private:
  void restore();
  void refuse_doomed_source() const;
  std::filesystem::path unnamed_checkpoint() const;
  void open_metrics();
  void choose_seed();
  void check_space() const;
  void write_state(std::int64_t step);
  void say_changed_flags() const;
  std::string start_table() const;

  cli::TrainOptions options_;
  std::string flagfile_;
  Net net_;
  VariableLayout layout_;
  Schedule schedule_;
  std::unique_ptr<Backend> backend_;
  Placement placement_;
  std::unique_ptr<data::RunFolder> folder_;
  RunState state_;
  data::Dataset dataset_;
  data::Dataset test_set_;  // with --eval_every only
  std::unique_ptr<Towers> towers_;
  std::uint64_t seed_ = 0;
  std::int64_t first_step_ = 0;
  std::uint64_t first_position_ = 0;
  std::int64_t saved_step_ = -1;
  std::filesystem::path
      unnamed_;  // the checkpoint resumed from, where no file `checkpoint` names it
  RepeatedError save_errors_, events_errors_;
  std::string state_error_;  // of the last attempt to write flags.txt; empty: it went well
  int input_threads_;        // one feeds hundreds of cores
  std::vector<float> variables_, averages_;  // for saving, restoring and evaluating
  std::unique_ptr<data::CheckpointSaver> saver_;
  std::unique_ptr<data::EventFileWriter> events_;
  std::unique_ptr<data::MetricsLog> metrics_;
  std::unique_ptr<data::Pipeline> pipeline_;
  std::unique_ptr<Evaluation> evaluation_;
};

}  // namespace towers::app
