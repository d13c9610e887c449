#include "app/run_files.h"

#include <algorithm>
#include <limits>
#include <random>
#include <sstream>
#include <utility>

#include "app/checkpoint_path.h"
#include "cli/console.h"
#include "cli/parse.h"
#include "core/error.h"
#include "data/checkpoint.h"
#include "data/dataset.h"
#include "data/model_checkpoint.h"
#include "data/trace_file.h"

namespace towers::app {
namespace {

data::RunFolder::Mode mode_of(const cli::TrainOptions& o) {
  if (o.resume) return data::RunFolder::Mode::resume;
  return o.overwrite ? data::RunFolder::Mode::overwrite : data::RunFolder::Mode::fresh;
}

// What a later run needs to go on: whole paths, so that it may start from any folder, the seed in
// use, and nothing that is about one start: where a later start says it before --flagfile, the file
// would undo it.
std::string stored_flags(std::string flagfile, const cli::TrainOptions& options,
                         std::uint64_t seed) {
  const auto absolute = [](const std::string& path) {  // of a file that may be none
    return path.empty() ? path : std::filesystem::absolute(path).string();
  };
  for (const auto& [name, value] :
       {std::pair{"train_dir", absolute(options.train_dir)},
        std::pair{"data_dir", absolute(options.data_dir)},
        std::pair{"metrics_log", data::name_of(options.metrics_log, options.train_dir)},
        std::pair{"cluster_token_file", absolute(options.cluster_token_file)},
        std::pair{"tls_cert", absolute(options.tls_cert)},
        std::pair{"tls_key", absolute(options.tls_key)},
        std::pair{"tls_ca", absolute(options.tls_ca)}, std::pair{"seed", std::to_string(seed)}})
    flagfile = cli::with_flag(flagfile, name, value);
  for (const char* name : {"resume", "overwrite", "init_from", "trace_file"})
    flagfile = cli::without_flag(flagfile, name);
  return flagfile;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error);
}

std::string checkpoint_name(std::int64_t step) {
  return data::checkpoint_prefix({}, step).filename().string();
}

void say_error(const std::string& line) {
  if (!line.empty()) cli::log_error(line);
}

}  // namespace

RunFiles::RunFiles(const cli::TrainOptions& options, const std::string& flagfile,
                   const VariableLayout& layout, std::int64_t examples_per_step)
    : options_(options),
      layout_(layout),
      examples_per_step_(examples_per_step),
      folder_(std::make_unique<data::RunFolder>(options.train_dir, mode_of(options))),
      variables_(layout.size()),
      averages_(layout.size()) {
  options_.metrics_log = data::file_of(options.metrics_log, options.train_dir);
  if (options.resume) state_ = read_run_state(folder_->path());
  refuse_doomed_flags();
  refuse_doomed_source();
  choose_seed();
  flagfile_ = stored_flags(flagfile, options_, seed_);
  const bool resumed = restore();
  if (resumed && !options.init_from.empty())
    cli::log_info("--init_from=" + options.init_from +
                  " is for a start at step 0, and left out where a run goes on");
}

void RunFiles::check() {
  std::error_code ignored;  // neither need be there yet
  if (!options_.trace_file.empty() &&
      std::filesystem::weakly_canonical(options_.trace_file, ignored) ==
          std::filesystem::weakly_canonical(options_.metrics_log, ignored))
    throw UsageError("--trace_file and --metrics_log are both " + options_.metrics_log +
                     "; give each its own name");
  check_space();
  if (!options_.metrics_log.empty()) open_metrics();
  if (!options_.trace_file.empty()) data::check_trace_file(options_.trace_file);
}

void RunFiles::open_metrics() {
  metrics_ = std::make_unique<data::MetricsLog>(options_.metrics_log);
  // A flagfile of another run names that run's log; a run's own is the one that its flags.txt
  // names.
  const bool own =
      first_step_ == 0
          ? folder_->owns(options_.metrics_log)
          : is_same_file(data::file_of(state_.flag("metrics_log").value_or(""), folder_->path()),
                         options_.metrics_log);
  if (metrics_->has_rows() && !own)
    throw Error("--metrics_log=" + options_.metrics_log +
                " holds the rows of another run; delete it, or give another name");
}

void RunFiles::choose_seed() {
  if (options_.seed) {
    seed_ = *options_.seed;
  } else if (const auto stored = state_.flag("seed")) {
    std::istringstream text(*stored);
    if (!(text >> seed_) || !text.eof())
      throw Error((folder_->path() / data::kFlagsFile).string() + ": --seed=" + *stored +
                  " is not a seed; give --seed");
  } else {
    if (!folder_->checkpoints().empty() && options_.resume)
      cli::log_warning(folder_->path().string() +
                       ": flags.txt with the seed is not there; going on with a new seed");
    std::random_device random;
    seed_ =
        (static_cast<std::uint64_t>(random()) << 32 | random()) >> 11;  // short enough to retype
  }
}

// A run that was killed in its very first save may leave a whole checkpoint that is not named yet.
// Only flags.txt tells it from one that somebody put there.
std::filesystem::path RunFiles::unnamed_checkpoint() const {
  const std::vector<std::filesystem::path> there = folder_->checkpoints();
  const bool own = there.size() == 1 && state_.position.count(there.front().filename().string());
  return own ? there.front() : std::filesystem::path();
}

void RunFiles::refuse_doomed_flags() const {
  if (options_.resume || options_.overwrite) return;
  for (const std::string& flagfile : options_.flagfiles)
    if (is_same_file(flagfile, folder_->path() / data::kFlagsFile))
      throw UsageError(
          "--flagfile=" + flagfile + " is of the run in --train_dir=" + folder_->path().string() +
          ", whose files a new run deletes; give --resume " +
          "to go on there, --overwrite to start anew there, or another --train_dir " + "behind it");
}

void RunFiles::refuse_doomed_source() const {
  if (options_.init_from.empty() || options_.resume) return;
  const std::string source = find_checkpoint(options_.init_from).string();
  std::vector<std::filesystem::path> all = folder_->checkpoints();
  if (const auto best = folder_->path() / data::kBestFolder; std::filesystem::is_directory(best))
    for (const std::filesystem::path& each : data::checkpoints_in(best)) all.push_back(each);
  for (const std::filesystem::path& doomed : all)
    if (is_same_file(source + ".index", doomed.string() + ".index"))
      throw UsageError("--init_from=" + options_.init_from + " lies in --train_dir=" +
                       folder_->path().string() + ", where a new run deletes the former one's " +
                       "files; give another --train_dir, or --resume to go on there");
}

bool RunFiles::restore() {
  data::CheckpointState found;
  if (options_.resume) found = data::read_checkpoint_state(folder_->path());
  if (!found.warning.empty()) cli::log_warning(found.warning);
  if (options_.resume && found.latest.empty()) found.latest = unnamed_ = unnamed_checkpoint();
  if (!found.latest.empty()) {
    const data::CheckpointReader reader(found.latest);
    data::restore_variables(reader, layout_, variables_);
    data::restore_averages(reader, layout_, averages_);
    first_step_ = data::restore_global_step(reader);
    if (first_step_ > std::numeric_limits<std::int64_t>::max() / examples_per_step_)
      throw Error(found.latest.string() + ": its global_step " + std::to_string(first_step_) +
                  " is beyond what can be counted; start anew with --init_from");
    const auto position = state_.position.find(found.latest.filename().string());
    first_position_ = position != state_.position.end()
                          ? position->second
                          : static_cast<std::uint64_t>(first_step_ * examples_per_step_);
    cli::log_info("resuming from " + found.latest.string() + " at step " +
                  std::to_string(first_step_));
    say_changed_flags();
    return true;
  }
  if (options_.resume) {
    const std::vector<std::filesystem::path> unnamed = folder_->checkpoints();
    if (!unnamed.empty())
      throw Error(folder_->path().string() + " holds " + unnamed.back().filename().string() +
                  " but no file `checkpoint` that names it: write one with the line " +
                  "model_checkpoint_path: \"" + unnamed.back().filename().string() +
                  "\", or give --init_from and another --train_dir");
    cli::log_info(folder_->path().string() + " holds no checkpoint: starting at step 0");
  }
  state_ = {};
  if (options_.init_from.empty()) {
    initialize_variables(layout_, seed_, variables_);
  } else {
    const data::CheckpointReader reader(find_checkpoint(options_.init_from));
    data::restore_variables(reader, layout_, variables_);
    cli::log_info("variables from " + reader.prefix().string() + ", step 0");
  }
  averages_ = variables_;
  return false;
}

void RunFiles::say_changed_flags() const {
  RunState now;
  now.flagfile = flagfile_;
  std::string changed;
  for (const char* name :
       {"batch_size", "num_gpus", "seed", "dataset", "precision", "learning_rate",
        "learning_rate_decay", "epochs_per_decay", "moving_average_decay", "weight_decay",
        "decay_by", "convolution", "allow_tf32", "simd", "deterministic"}) {
    const auto before = state_.flag(name), after = now.flag(name);
    if (before && after && *before != *after)
      changed += std::string(changed.empty() ? "" : ", ") + "--" + name + "=" + *after + " (was " +
                 *before + ")";
  }
  if (!changed.empty()) cli::log_warning("resuming with other flags than before: " + changed);
}

void RunFiles::check_space() const {
  // Values and their averages; one more than is kept, since the oldest goes after the newest is
  // there. A former run's checkpoints make room: a new run deletes them, a resumed one counts them
  // among those it keeps, unless it keeps all.
  const std::uint64_t bytes = 2 * sizeof(float) * layout_.trainable_values() + 4096;
  const std::int64_t every = options_.checkpoint_every;
  const std::int64_t saves = every > 0 ? 2 + (options_.max_steps - first_step_ - 1) / every : 1;
  const std::int64_t kept =
      (options_.max_to_keep == 0 ? saves
                                 : std::min(saves, std::int64_t{options_.max_to_keep} + 1)) +
      (options_.eval_every > 0 ? 2 : 0);  // the best, and a better one that replaces it
  const std::uint64_t free = data::free_bytes(folder_->path());
  const std::int64_t there = static_cast<std::int64_t>(folder_->checkpoints().size());
  const bool stay = options_.resume && options_.max_to_keep == 0;
  const std::int64_t room = static_cast<std::int64_t>(free / bytes) + (stay ? 0 : there);
  if (kept > room || (options_.resume && free < bytes))
    throw Error("--train_dir=" + folder_->path().string() + ": room is needed for " +
                std::to_string(kept) + " checkpoints of " + cli::human_bytes(bytes) +
                " (one more than is kept), " + std::to_string(there) + " are there and " +
                cli::human_bytes(free) + " are free; make room, or lower --max_to_keep");
}

void RunFiles::begin(const std::string& graph) {
  folder_->clear();
  if (!unnamed_.empty()) data::write_checkpoint_state(folder_->path(), {unnamed_, {unnamed_}, {}});
  if (!folder_->notice().empty()) cli::log_info(folder_->notice());
  saver_ = std::make_unique<data::CheckpointSaver>(folder_->path(), options_.max_to_keep);
  if (options_.eval_every > 0) best_ = std::make_unique<BestCheckpoint>(folder_->path());
  events_ = std::make_unique<data::EventFileWriter>(folder_->path());
  events_->add_graph(graph);
  if (first_step_ > 0) events_->add_session_start(first_step_);
  if (metrics_) metrics_->begin(first_step_);
}

void RunFiles::go_back() {
  say_error(save_errors_.line_for(finish_saving()));
  options_.resume = true;  // what lies there now is this run's
  restore();
  saved_step_ = first_step_ - 1;
  try_events([&] {
    events_->add_session_start(first_step_);
    if (metrics_) metrics_->begin(first_step_);
  });
}

void RunFiles::save(std::int64_t step, std::uint64_t position) {
  say_error(save_errors_.line_for(finish_saving()));
  if (save_errors_.recovered()) cli::log_info("saving works again: " + last_checkpoint());
  const float global_step = static_cast<float>(step + 1);
  write_state(step, position);
  saved_step_ = step;
  // A checkpoint whose position nobody knows could not be gone on from: the last one stays.
  if (!state_error_.empty()) return;
  saver_->save(step, data::model_tensors(layout_, variables_, averages_, global_step));
}

void RunFiles::keep_if_best(std::int64_t step, double precision) {
  if (!best_->is_better(precision)) return;
  cli::log_info("the best so far: saving " + best_->prefix_of(step).string());
  best_->save(step, precision,
              data::model_tensors(layout_, variables_, averages_, static_cast<float>(step + 1)));
}

void RunFiles::try_events(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    const std::string line = events_errors_.line_for(error.what());
    if (!line.empty()) cli::log_warning(line);
  }
}

void RunFiles::write_state(std::int64_t step, std::uint64_t position) {
  state_.flagfile = flagfile_;
  state_.position[checkpoint_name(step)] = position;
  // Positions of checkpoints that are gone would add up over a long run. The last save may still be
  // under way.
  std::erase_if(state_.position, [&](const auto& entry) {
    return entry.first != checkpoint_name(step) && entry.first != checkpoint_name(saved_step_) &&
           !std::filesystem::exists(folder_->path() / (entry.first + ".index"));
  });
  state_error_.clear();
  try {
    data::write_file_atomically(folder_->path() / data::kFlagsFile, to_text(state_));
  } catch (const Error& error) {
    state_error_ = error.what();
  }
}

std::string RunFiles::finish_saving() {
  const std::string error = saver_->wait();
  const std::string best_error = best_ ? best_->finish() : std::string();
  if (!error.empty()) return error;
  return state_error_.empty() ? best_error : state_error_;
}

}  // namespace towers::app
