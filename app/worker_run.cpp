#include "app/worker_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "app/rank_settings.h"
#include "app/run_state.h"
#include "app/setup.h"
#include "app/signals.h"
#include "app/start_table.h"
#include "app/training_input.h"
#include "cli/console.h"
#include "core/bfloat16.h"
#include "core/error.h"
#include "cpu/backend.h"

namespace towers::app {
namespace {

constexpr double kSaveSeconds = 3;      // for what is read from the servers, after a signal too
constexpr double kExchangeSeconds = 1;  // after a signal, for the exchange that is under way
constexpr auto kOutOfStep = std::chrono::milliseconds(20);

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The chief goes on where train_dir has a checkpoint, so that it can be started again as it was.
cli::TrainOptions chiefs(cli::TrainOptions options) {
  options.resume = options.resume || !options.overwrite;
  return options;
}

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

WorkerRun::WorkerRun(const cli::TrainOptions& options, const cli::Parsed& parsed,
                     const ClusterTask& task)
    : options_(options),
      flagfile_(parsed.flagfile),
      task_(task),
      workers_(task.cluster.workers()),
      rules_(update_rules(options, task)),
      set_(options),
      values_(set_.layout.size()),
      averages_(set_.layout.size()),
      gradient_(set_.layout.size()) {
  rules_.schedule = schedule_of(
      options, options.num_gpus * (rules_.synchronous ? rules_.replicas_to_aggregate : 1));
  rules_.moving_averages = true;
  if (task.task.index == 0) {
    files_ = std::make_unique<RunFiles>(chiefs(options), parsed.flagfile, set_.layout,
                                        examples_per_update());
    if (files_->first_step() < options.max_steps) files_->check();
  }
  dataset_ = load_dataset(options, data::Split::train);
  if (is_chief() && options.eval_every > 0)
    evaluation_ = std::make_unique<PeriodicEvaluation>(options, *set_.backend, set_.net);
  cluster::Hooks hooks = cluster_hooks();
  hooks.stop = [this] { return told_to_end(); };
  if (is_chief()) hooks.comes_once_more = [] { return SignalGuard::received() != 0; };
  servers_ = std::make_unique<cluster::Client>(
      client(), hooks, [this](std::span<float> values, std::span<float> averages) {
        return restore(values, averages);
      });
}

cluster::ClientOptions WorkerRun::client() const {
  cluster::ClientOptions client = client_options(options_, task_);
  client.rules = rules_;
  client.model_size = set_.layout.size();
  for (const Variable& v : set_.layout.variables())
    client.variables.push_back({v.name, v.offset, v.size});
  client.settings["model"] = "cifar10";
  RunState flags;
  flags.flagfile = flagfile_;
  for (const char* name : {"batch_size", "num_gpus", "max_steps", "dataset", "precision",
                           "learning_rate", "learning_rate_decay", "epochs_per_decay", "decay_by",
                           "moving_average_decay", "weight_decay", "convolution", "allow_tf32"})
    client.settings[std::string("--") + name] = flags.flag(name).value_or("");
  // An update then is the mean that one process with as many towers makes, so they must round
  // alike; asynchronous workers may be of any kind.
  if (rules_.synchronous && set_.backend->devices().front().kind == DeviceKind::cpu) {
    client.settings["--simd"] = chosen_simd(options_);
    if (options_.precision == "bf16") client.settings["bf16 on the CPU"] = cpu::bf16_support();
  }
  return client;
}

cluster::Start WorkerRun::restore(std::span<float> values, std::span<float> averages) {
  if (begun_) {
    files_->go_back();
  } else if (files_->first_step() < options_.max_steps) {
    files_->begin(set_.graph(options_.batch_size));
    begun_ = true;
  }
  std::copy(files_->variables().begin(), files_->variables().end(), values.begin());
  std::copy(files_->averages().begin(), files_->averages().end(), averages.begin());
  return {files_->first_step(), files_->seed(), files_->first_position()};
}

bool WorkerRun::told_to_end() const {
  if (SignalGuard::received() == 0) return false;
  const double time = now();
  double never = 0;
  told_at_.compare_exchange_strong(never, time);
  return time > std::max(told_at_.load() + kExchangeSeconds, save_until_.load());
}

bool WorkerRun::join() {
  if (!take(servers_->pull(values_))) return false;
  check_seed();
  return true;
}

void WorkerRun::check_seed() const {
  const std::uint64_t seed = servers_->start().seed;
  if (options_.seed && *options_.seed != seed)
    throw Error("--seed differs: '" + std::to_string(*options_.seed) + "' here, '" +
                std::to_string(seed) + "' at " + cluster::worker_name(task_.cluster, 0) +
                "; all tasks need the same, or none but the chief");
}

bool WorkerRun::take(std::optional<std::int64_t> updates, bool exact) {
  if (!updates) return false;
  updates_ = *updates;
  std::span<const float> seen = values_;
  if (exact && options_.pull_precision == "bf16") {
    // As they come without averages, or else when the chief saves would change what it computes.
    rounded_.resize(values_.size());
    std::transform(values_.begin(), values_.end(), rounded_.begin(),
                   [](float value) { return from_bfloat16(to_bfloat16(value)); });
    seen = rounded_;
  }
  // The averages are the servers' business.
  set_.towers->write_variables(seen, seen);
  if (servers_->session() != session_) {
    session_ = servers_->session();
    open_pipeline();
  }
  return true;
}

void WorkerRun::open_pipeline() {
  const cluster::Start& start = servers_->start();
  const std::uint64_t made = static_cast<std::uint64_t>(updates_ - start.step);
  const std::uint64_t workers = static_cast<std::uint64_t>(workers_);
  const std::uint64_t own = rules_.synchronous ? made : made / workers;  // steps of each worker
  const std::uint64_t turn = own * workers + static_cast<std::uint64_t>(task_.task.index);
  pipeline_.reset();
  input_ = choose_input(options_.input, *set_.backend, towers(), dataset_, start.seed);
  pipeline_ = app::open_pipeline(
      options_, *set_.backend, dataset_,
      {.seed = start.seed,
       .first_position = start.position + turn * static_cast<std::uint64_t>(examples_per_step()),
       .readers = workers_,
       .form = input_});
}

WorkerRun::Exchange WorkerRun::exchange() {
  const std::uint64_t session = session_;
  towers().read_gradients(gradient_);
  if (!take(servers_->push(gradient_, values_))) return Exchange::told_to_end;
  return session_ == session ? Exchange::done : Exchange::went_back;
}

bool WorkerRun::fetch() {
  if (SignalGuard::received() != 0) save_until_ = now() + kSaveSeconds;
  // Servers whose updates all workers make together are of one step, but for a moment in which a
  // worker has left one of them and not yet the other.
  const bool together = rules_.synchronous && rules_.replicas_to_aggregate == workers_;
  const double end = now() + kSaveSeconds;
  bool came = take(servers_->pull(values_, averages_), true);
  while (came && together && !servers_->in_step()) {
    std::this_thread::sleep_for(kOutOfStep);
    came = now() < end && take(servers_->pull(values_, averages_), true);
  }
  save_until_ = 0;
  if (!came) return false;
  if (!all_finite(values_) || !all_finite(averages_))
    throw Error("Model diverged with loss = NaN: step " + std::to_string(updates_ - 1) +
                ", a variable on the servers is not finite; the last good checkpoint is " +
                (files_->last_checkpoint().empty() ? "none" : files_->last_checkpoint()) +
                "; start anew, or with --init_from an earlier one, at a lower --learning_rate");
  return true;
}

void WorkerRun::hand_over() {
  files_->variables() = values_;
  files_->averages() = averages_;
}

void WorkerRun::save() {
  const std::int64_t step = updates_ - 1;
  if (step < 0 || files_->is_saved(step)) return;
  hand_over();
  files_->save(step, position_after(step));
}

Precision1 WorkerRun::evaluate() {
  return evaluation_->run(averages_);
}

void WorkerRun::keep_if_best(const Precision1& result) {
  const std::int64_t step = updates_ - 1;  // of the variables that evaluate() has pulled
  if (result.examples == 0 || step < 0) return;
  hand_over();
  files_->keep_if_best(step, result.precision());
}

std::int64_t WorkerRun::examples_per_update() const {
  return examples_per_step() * (rules_.synchronous ? workers_ : 1);
}

std::uint64_t WorkerRun::position_after(std::int64_t step) const {
  const cluster::Start& start = servers_->start();
  return start.position +
         static_cast<std::uint64_t>((step + 1 - start.step) * examples_per_update());
}

double WorkerRun::epochs_after(std::int64_t step) const {
  return static_cast<double>(position_after(step)) / data::kTrainExamples;
}

std::string WorkerRun::workers_text() const {
  const std::string all =
      std::to_string(workers_) + ", this is worker " + std::to_string(task_.task.index) + "; ";
  if (!rules_.synchronous) return all + "asynchronous: each gradient is an update";
  const int gradients = rules_.replicas_to_aggregate;
  return all + "synchronous: an update is the mean of " + std::to_string(gradients) +
         (gradients == 1 ? " gradient" : " gradients");
}

void WorkerRun::say_start() const {
  app::say_start({.options = options_,
                  .backend = *set_.backend,
                  .placement = set_.placement,
                  .schedule = rules_.schedule,
                  .data = dataset_.description,
                  .seed = servers_->start().seed,
                  .input = input_text(input_, dataset_, input_threads(options_)),
                  .first_step = updates_,
                  .train_dir = files_ ? files_->folder().path().string()
                                      : "kept by " + cluster::worker_name(task_.cluster, 0),
                  .workers = workers_text()},
                 set_.net, set_.device_names());
}

}  // namespace towers::app
