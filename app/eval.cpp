// `towers eval`: precision @ 1 of the newest checkpoint, once or again for each new one.

#include <algorithm>
#include <optional>
#include <utility>

#include "app/backend_choice.h"
#include "app/checkpoint_path.h"
#include "app/commands.h"
#include "app/evaluation.h"
#include "app/setup.h"
#include "app/signals.h"
#include "app/start_table.h"
#include "cli/console.h"
#include "core/error.h"
#include "core/models/cifar10.h"
#include "data/checkpoint.h"
#include "data/checkpoint_saver.h"
#include "data/event_file.h"
#include "data/model_checkpoint.h"
#include "data/run_folder.h"

namespace towers::app {
namespace {

std::int64_t checked_examples(const cli::EvalOptions& options, const data::Dataset& dataset) {
  const std::int64_t available = static_cast<std::int64_t>(dataset.size());
  if (options.num_examples > available)
    throw UsageError("--num_examples=" + std::to_string(options.num_examples) +
                     ": --eval_data=" + options.eval_data + " has " + std::to_string(available) +
                     " examples, each counted once");
  return options.num_examples;
}

// Which checkpoint it is: a new run writes the same names again.
using Seen = std::pair<std::filesystem::path, std::filesystem::file_time_type>;

Seen look_at(const std::filesystem::path& prefix) {
  std::error_code ignored;
  return {prefix, std::filesystem::last_write_time(prefix.string() + ".index", ignored)};
}

// The folder's latest, or the checkpoint that is named itself; empty where there is none yet.
data::CheckpointState find(const std::filesystem::path& named) {
  std::error_code ignored;
  if (std::filesystem::is_directory(named, ignored)) return data::read_checkpoint_state(named);
  const std::filesystem::path prefix = find_checkpoint(named);
  if (!std::filesystem::exists(prefix.string() + ".index", ignored)) return {};
  return {.latest = prefix, .all = {prefix}, .warning = ""};
}

class Evaluator {
 public:
  explicit Evaluator(const cli::EvalOptions& options)
      : options_(options),
        net_(cifar10_net()),
        layout_(net_),
        backend_(make_backend(options)),
        dataset_(load_dataset(options, parse_split(options.eval_data))),
        examples_(checked_examples(options, dataset_)),
        evaluation_(*backend_, net_, dataset_, options.batch_size,
                    parse_precision(options.precision)),
        variables_(layout_.size()) {
    if (options.log_device_placement)
      for (const std::string& line : placement_lines(net_, {full_name(backend_->devices()[0])}))
        cli::log_info(line);
  }

  // Evaluates the checkpoint; false when a signal came in between.
  bool evaluate(const std::filesystem::path& prefix) {
    const data::CheckpointReader reader(prefix);
    if (options_.raw_weights)
      data::restore_variables(reader, layout_, variables_);
    else
      data::restore_averages(reader, layout_, variables_);
    const std::int64_t step = data::restore_global_step(reader);
    const Precision1 result =
        evaluation_.run(variables_, examples_, [] { return SignalGuard::received() != 0; });
    if (result.examples < examples_) return false;
    cli::log_info("evaluated " + prefix.string() + " (global_step " + std::to_string(step) +
                  "): " + std::to_string(result.right) + " of " + std::to_string(result.examples) +
                  " right");
    cli::print_line(cli::precision_line(std::chrono::system_clock::now(), result.precision()));
    if (!events_) events_.emplace(options_.eval_dir);
    events_->begin_summary(data::step_in_name(prefix).value_or(step));  // as TensorFlow's
    events_->scalar("Precision @ 1", static_cast<float>(result.precision()));
    events_->end_summary();
    events_->flush();
    return true;
  }

 private:
  const cli::EvalOptions& options_;
  Net net_;
  VariableLayout layout_;
  std::unique_ptr<Backend> backend_;
  data::Dataset dataset_;
  std::int64_t examples_;
  Evaluation evaluation_;
  std::optional<data::EventFileWriter> events_;  // from the first evaluation on
  std::vector<float> variables_;
};

}  // namespace

int run_eval(const cli::EvalOptions& options) {
  const std::string none = "No checkpoint file found";
  if (options.run_once && find(options.checkpoint_dir).latest.empty())
    throw Error(none + " in " + options.checkpoint_dir +
                "; train first, or give the folder with --checkpoint_dir");
  data::require_writable_folder(options.eval_dir);
  Evaluator evaluator(options);
  SignalGuard signals;
  Seen last;
  std::string last_warning;
  while (SignalGuard::received() == 0) {
    const data::CheckpointState state = find(options.checkpoint_dir);
    if (!state.warning.empty() && state.warning != last_warning) cli::log_warning(state.warning);
    last_warning = state.warning;
    if (state.latest.empty()) {
      cli::log_info(none + " in " + options.checkpoint_dir);
    } else if (const Seen seen = look_at(state.latest); seen != last) {
      try {
        if (!evaluator.evaluate(state.latest)) break;
        last = seen;
      } catch (const Error& error) {
        if (options.run_once) throw;
        // The trainer may have deleted it between two looks.
        cli::log_warning(std::string(error.what()) + "; looking again");
      }
    }
    if (options.run_once) break;
    // Not a busy loop, whatever the flag says.
    const double least = state.latest.empty() ? 1.0 : 0.05;
    SignalGuard::sleep_for(
        std::chrono::duration<double>(std::max(least, options.eval_interval_secs)));
  }
  return exit_code_of(SignalGuard::received());
}

}  // namespace towers::app
