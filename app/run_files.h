#pragma once
// What a run keeps in its train_dir: checkpoints, events, the metrics log, and flags.txt with the
// seed and the position in the example stream.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/best_checkpoint.h"
#include "app/repeated_error.h"
#include "app/run_state.h"
#include "cli/options.h"
#include "core/error.h"
#include "core/variables.h"
#include "data/checkpoint_saver.h"
#include "data/event_file.h"
#include "data/metrics_log.h"
#include "data/run_folder.h"

namespace towers::app {

class RunFiles {
 public:
  // The folder and its lock, the seed, the variables that are restored or initial: nothing is
  // deleted or written yet. flagfile: of the run. examples_per_step: that an update takes.
  // `layout` must outlive it. Throws Error or UsageError.
  RunFiles(const cli::TrainOptions& options, const std::string& flagfile,
           const VariableLayout& layout, std::int64_t examples_per_step);

  std::uint64_t seed() const { return seed_; }
  std::int64_t first_step() const { return first_step_; }           // of what was restored
  std::uint64_t first_position() const { return first_position_; }  // in the example stream
  // The flat buffers that restoring fills and saving writes (layout.size() values).
  std::vector<float>& variables() { return variables_; }
  std::vector<float>& averages() { return averages_; }
  const data::RunFolder& folder() const { return *folder_; }

  // Space for the checkpoints of all steps to come, the metrics log and the timeline. Throws Error.
  void check();
  // Deletes a former run's files, opens the event file with `graph`, and the metrics log.
  void begin(const std::string& graph);
  // Once more from the latest checkpoint, or the beginning where there is none yet: a cluster that
  // lost a parameter server goes back there.
  void go_back();

  data::EventFileWriter& events() { return *events_; }
  data::MetricsLog* metrics() { return metrics_.get(); }  // null without --metrics_log
  // A full disk costs summaries, not the run: an Error of `write` is logged, one that repeats
  // itself not every time.
  void try_events(const std::function<void()>& write);

  bool is_saved(std::int64_t step) const { return step == saved_step_; }
  // Saves the buffers as model.ckpt-STEP in the background. position: in the example stream after
  // that step.
  void save(std::int64_t step, std::uint64_t position);
  // Saves the buffers to train_dir/best, in the background, where `precision` is better than that
  // of the checkpoint there.
  void keep_if_best(std::int64_t step, double precision);
  // Waits for the last save, and the best one's. Returns its error, empty when it went well.
  std::string finish_saving();
  // The last good checkpoint; empty: none.
  std::string last_checkpoint() const { return saver_->latest().string(); }

 private:
  // False: there was no checkpoint in train_dir to go on from.
  bool restore();
  // That the new run would delete: the flags that it was given, the checkpoint that it starts from.
  void refuse_doomed_flags() const;
  void refuse_doomed_source() const;
  std::filesystem::path unnamed_checkpoint() const;
  void open_metrics();
  void choose_seed();
  void check_space() const;
  void write_state(std::int64_t step, std::uint64_t position);
  void say_changed_flags() const;

  cli::TrainOptions options_;
  std::string flagfile_;
  const VariableLayout& layout_;
  std::int64_t examples_per_step_;
  std::unique_ptr<data::RunFolder> folder_;
  RunState state_;
  std::uint64_t seed_ = 0;
  std::int64_t first_step_ = 0;
  std::uint64_t first_position_ = 0;
  std::int64_t saved_step_ = -1;
  std::filesystem::path
      unnamed_;  // the checkpoint resumed from, where no file `checkpoint` names it
  RepeatedError save_errors_, events_errors_;
  std::string state_error_;  // of the last attempt to write flags.txt; empty: it went well
  std::vector<float> variables_, averages_;
  std::unique_ptr<data::CheckpointSaver> saver_;
  std::unique_ptr<BestCheckpoint> best_;  // with --eval_every only
  std::unique_ptr<data::EventFileWriter> events_;
  std::unique_ptr<data::MetricsLog> metrics_;
};

}  // namespace towers::app
