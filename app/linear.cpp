// `towers linear`: a linear regression on parameter servers, or alone.
//
//   $ towers linear --learning_rate=0.001
//   step: 1000, weight: 1.807215, biase: 8.655127, loss: 2.213466

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "app/cluster_task.h"
#include "app/commands.h"
#include "app/line.h"
#include "app/line_checkpoints.h"
#include "app/signals.h"
#include "cli/console.h"
#include "cli/values.h"
#include "cluster/launch.h"
#include "core/error.h"

namespace towers::app {
namespace {

int reload(const cli::LinearOptions& options) {
  const std::optional<SavedLine> saved = read_saved_line(options.checkpoint_dir);
  if (!saved) {
    cli::log_info("No checkpoint file found in " + options.checkpoint_dir);
    return 0;
  }
  cli::print_line(saved->checkpoint.string() + ", global_step = " + std::to_string(saved->step));
  char text[128];
  std::snprintf(text, sizeof text, "weight: %f, biase: %f", static_cast<double>(saved->line[0]),
                static_cast<double>(saved->line[1]));
  cli::print_line(text);
  return 0;
}

std::uint64_t chosen_seed(const cli::LinearOptions& options) {
  std::random_device random;
  const std::uint64_t seed =
      options.seed ? *options.seed : (std::uint64_t{random()} << 32 | random()) >> 11;
  cli::log_info("seed " + std::to_string(seed));
  return seed;
}

// From the checkpoint or the beginning; an initial line is saved at once, so that there always is
// one to go back to.
cluster::Restore restore_from(LineCheckpoints& checkpoints, std::uint64_t seed) {
  return [&checkpoints, seed](std::span<float> values, std::span<float>) {
    SavedLine start;
    start.line = initial_line(seed);
    if (const auto saved = checkpoints.latest()) {
      start = *saved;
      cli::log_info("going on from " + start.checkpoint.string());
    } else {
      checkpoints.save(0, start.line, {});
    }
    std::copy(start.line.begin(), start.line.end(), values.begin());
    return cluster::Start{.step = start.step, .seed = seed, .position = 0};
  };
}

// Each would fit a line of its own, in one folder.
void refuse_ranks() {
  if (const auto launch = cluster::find_launch())
    throw UsageError("`towers linear` was started as one of several processes (" +
                     launch->variable + "), which it does not share; start it by itself (" +
                     cluster::kAlone + " towers linear ...)");
}

// Every worker's loop. checkpoints: the chief's, null for others.
void train_line(const cli::LinearOptions& options, cluster::VariableStore& variables, int worker,
                std::uint64_t seed, LineCheckpoints* checkpoints) {
  Line line{};
  std::optional<float> loss;
  const auto check = [&](bool finite, std::int64_t at) {
    if (!finite)
      throw Error("Model diverged with loss = NaN: step " + std::to_string(at) +
                  "; start from an earlier checkpoint, or anew, at a lower --learning_rate");
  };
  std::optional<std::int64_t> step = variables.pull(line), last = step;
  for (std::uint64_t index = step ? static_cast<std::uint64_t>(*step) : 0;
       step && *step < options.max_steps; ++index) {
    const LineGradient example = line_gradient(line, line_example(seed, worker, index));
    check(std::isfinite(example.loss), *step);
    loss = example.loss;
    step = variables.push(example.gradient, line);
    if (!step) break;
    // Before it may be saved.
    check(std::all_of(line.begin(), line.end(), [](float v) { return std::isfinite(v); }), *step);
    last = step;
    if (*step % options.steps_to_validate == 0) cli::print_line(line_text(*step, line, *loss));
    if (checkpoints != nullptr && checkpoints->due()) checkpoints->save(*step, line, loss);
    if (SignalGuard::received() != 0 || cli::stdout_closed()) break;
  }
  if (checkpoints == nullptr) return;
  if (last && loss) checkpoints->save(*last, line, loss);
  checkpoints->finish();
}

// One learning rate for all steps.
Schedule line_schedule(const cli::LinearOptions& options) {
  return {.learning_rate = static_cast<float>(options.learning_rate),
          .learning_rate_decay = 1,
          .decay_steps = std::numeric_limits<std::int64_t>::max(),
          .moving_average_decay = 0};
}

cluster::ClientOptions line_client(const cli::LinearOptions& options, const ClusterTask& task) {
  cluster::ClientOptions client = client_options(options, task);
  client.rules.schedule = line_schedule(options);
  for (const char* name : kLineVariables)
    client.variables.push_back({name, client.model_size++, 1});
  client.settings["model"] = "linear";
  client.settings["--learning_rate"] = cli::write_real(options.learning_rate);
  client.settings["--max_steps"] = std::to_string(options.max_steps);
  return client;
}

}  // namespace

int run_linear(const cli::LinearOptions& options) {
  if (options.reload) return reload(options);
  ClusterTask task;
  if (is_distributed(options)) {
    task = cluster_task(options);
  } else {
    refuse_cluster_flags_alone(options);
    refuse_ranks();
  }
  if (task.task.job == cluster::Job::ps) return run_parameter_server(options, task);

  const bool chief = task.task.index == 0;
  std::unique_ptr<LineCheckpoints> checkpoints;
  if (chief)
    checkpoints =
        std::make_unique<LineCheckpoints>(options.checkpoint_dir, options.save_model_secs);
  const std::uint64_t seed = chosen_seed(options);
  const cluster::Restore restore = chief ? restore_from(*checkpoints, seed) : cluster::Restore();
  SignalGuard signals;
  std::unique_ptr<cluster::VariableStore> variables;
  if (is_distributed(options))
    variables =
        std::make_unique<cluster::Client>(line_client(options, task), cluster_hooks(), restore);
  else
    variables = std::make_unique<cluster::LocalStore>(
        kLineVariables.size(), cluster::UpdateRules{.schedule = line_schedule(options)}, restore);
  train_line(options, *variables, task.task.index, seed, checkpoints.get());
  return exit_code_of(SignalGuard::received());
}

}  // namespace towers::app
