#pragma once
// A worker's part in a training on parameter servers: its towers, its share of the examples, and,
// where it is the chief, the files. What it must have is checked before it speaks to a server;
// nothing of a former run is deleted before all servers are there.
//
// Of the stream of examples the workers take --num_gpus batches each in turn. In synchronous
// training step s of worker w of N takes what towers w * T .. w * T + T - 1 of one process with N *
// T towers take. Asynchronous workers go through their parts at their own speed.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cluster_task.h"
#include "app/periodic_evaluation.h"
#include "app/run_files.h"
#include "app/tower_set.h"
#include "cli/options.h"
#include "cli/parse.h"
#include "data/dataset.h"
#include "data/pipeline.h"

namespace towers::app {

class WorkerRun {
 public:
  // Throws Error or UsageError.
  WorkerRun(const cli::TrainOptions& options, const cli::Parsed& parsed, const ClusterTask& task);

  // Waits until the variables are in place. False: told to end meanwhile.
  bool join();
  // The start-up table, and the lines that go with it.
  void say_start() const;

  // Updates that the variables in the towers have seen.
  std::int64_t updates() const { return updates_; }
  bool finished() const { return updates_ >= options_.max_steps; }
  std::int64_t dropped() const { return servers_->dropped(); }  // of all workers
  bool is_chief() const { return files_ != nullptr; }

  // How an exchange with the servers ended.
  enum class Exchange {
    done,        // the gradient is in an update, or was too late for one; the variables are new
    went_back,   // a server was lost: the variables are those of the latest checkpoint
    told_to_end  // the gradient is lost
  };
  // Pushes the towers' mean gradient, and brings the variables as they are then.
  Exchange exchange();

  // Of the chief. Brings what the servers have, their moving averages too; takes a few seconds at
  // most after a signal. False: told to end, and they did not answer; or they do not come into
  // step.
  bool fetch();
  // What fetch() has brought: saves it as model.ckpt-N, N = updates() - 1; gives the precision of
  // the moving averages, 0 examples when a signal came in between.
  void save();
  Precision1 evaluate();
  // After evaluate(): as TrainingRun's.
  void keep_if_best(const Precision1& result);

  const cli::TrainOptions& options() const { return options_; }
  const Schedule& schedule() const { return rules_.schedule; }
  TowerSet& set() { return set_; }
  Towers& towers() { return *set_.towers; }
  RunFiles* files() { return files_.get(); }  // the chief's, null for others
  data::Pipeline& pipeline() { return *pipeline_; }
  std::int64_t examples_per_step() const {
    return static_cast<std::int64_t>(options_.batch_size) * options_.num_gpus;
  }
  // Passes of all workers over the training set, after `step`.
  double epochs_after(std::int64_t step) const;

 private:
  cluster::ClientOptions client() const;
  cluster::Start restore(std::span<float> values, std::span<float> averages);
  // Of all workers, in the update that is counted as one step.
  std::int64_t examples_per_update() const;
  std::uint64_t position_after(std::int64_t step) const;
  void check_seed() const;
  std::string workers_text() const;  // of the start-up table
  void open_pipeline();
  // Takes what came with `updates`: the variables to the towers. False: told to end.
  // exact: they came with their averages, so as fp32.
  bool take(std::optional<std::int64_t> updates, bool exact = false);
  // What fetch() brought, to the files' buffers.
  void hand_over();
  bool told_to_end() const;

  cli::TrainOptions options_;
  const std::string flagfile_;
  const ClusterTask task_;
  const int workers_;
  cluster::UpdateRules rules_;
  TowerSet set_;
  std::unique_ptr<RunFiles> files_;
  data::Dataset dataset_;
  InputForm input_ = InputForm::images;
  std::unique_ptr<PeriodicEvaluation> evaluation_;  // the chief's, with --eval_every
  std::vector<float> values_, averages_, gradient_;
  std::vector<float> rounded_;  // values_ as the towers see them, with --pull_precision=bf16
  std::int64_t updates_ = 0;
  std::uint64_t session_ = 0;
  bool begun_ = false;                       // the chief's files
  std::atomic<double> save_until_ = 0;       // a signal ends waits only after that time
  mutable std::atomic<double> told_at_ = 0;  // when a signal was seen first
  std::unique_ptr<data::Pipeline> pipeline_;
  std::unique_ptr<cluster::Client> servers_;
};

// `towers train` with --job_name=worker; the exit code.
int run_worker(const cli::TrainOptions& options, const cli::Parsed& parsed,
               const ClusterTask& task);

}  // namespace towers::app
