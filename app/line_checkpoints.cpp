#include "app/line_checkpoints.h"

#include <cmath>
#include <cstring>

#include "cli/console.h"
#include "core/error.h"
#include "data/run_folder.h"

namespace towers::app {
namespace {

constexpr int kMaxToKeep = 5;  // TensorFlow's default

const std::filesystem::path& made(const std::filesystem::path& dir) {
  data::require_writable_folder(dir);
  return dir;
}

}  // namespace

std::optional<SavedLine> read_saved_line(const std::filesystem::path& dir) {
  const data::CheckpointState state = data::read_checkpoint_state(dir);
  if (!state.warning.empty()) cli::log_warning(state.warning);
  if (state.latest.empty()) return {};
  const data::CheckpointReader reader(state.latest);
  SavedLine saved{.checkpoint = state.latest};
  for (std::size_t v = 0; v < saved.line.size(); ++v) {
    if (!reader.contains(kLineVariables[v]))
      throw Error("checkpoint " + state.latest.string() + " has no variable " + kLineVariables[v] +
                  ", so it is of another model; give another --checkpoint_dir");
    reader.read(kLineVariables[v], {&saved.line[v], 1});
  }
  saved.step = reader.read_integer("global_step");
  return saved;
}

LineCheckpoints::LineCheckpoints(const std::filesystem::path& dir, double seconds_between)
    : dir_(made(dir)),
      lock_(dir / "lock",
            [&] {
              throw Error("another process saves in " + dir.string() +
                          "; end it, or give another --checkpoint_dir");
            }),
      saver_(dir, kMaxToKeep),
      between_(seconds_between),
      saved_(std::chrono::steady_clock::now()) {}

void LineCheckpoints::await_save() {
  if (const std::string line = save_errors_.line_for(saver_.wait()); !line.empty())
    cli::log_warning(line);
  if (save_errors_.recovered()) cli::log_info("saving works again: " + saver_.latest().string());
}

std::optional<SavedLine> LineCheckpoints::latest() {
  await_save();
  return read_saved_line(dir_);
}

bool LineCheckpoints::due() const {
  return std::chrono::steady_clock::now() - saved_ >= between_;
}

void LineCheckpoints::save(std::int64_t step, const Line& line, std::optional<float> cost) {
  await_save();
  const auto global_step = static_cast<std::int32_t>(step);  // --max_steps is one
  const data::Tensor tensors[] = {
      {kLineVariables[0], data::DataType::float32, {1}, std::as_bytes(std::span(&line[0], 1))},
      {kLineVariables[1], data::DataType::float32, {1}, std::as_bytes(std::span(&line[1], 1))},
      {"global_step", data::DataType::int32, {}, std::as_bytes(std::span(&global_step, 1))}};
  saver_.save(step, tensors);
  saved_ = std::chrono::steady_clock::now();
  if (!cost) return;
  try {
    if (!events_) events_.emplace(dir_);
    events_->begin_summary(step);
    events_->scalar("cost", *cost);
    events_->end_summary();
  } catch (const Error& error) {  // a full disk costs summaries, not the run
    if (const std::string line = events_errors_.line_for(error.what()); !line.empty())
      cli::log_warning(line);
  }
}

void LineCheckpoints::finish() {
  const std::string message = saver_.wait();
  if (!message.empty())
    throw Error(message + "; the last good checkpoint is " +
                (saver_.latest().empty() ? "none" : saver_.latest().string()));
  if (events_) events_->flush();
}

}  // namespace towers::app
