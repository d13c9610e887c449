// `towers inspect`: what checkpoints, safetensors and event files hold.

#include "app/inspect.h"

#include <algorithm>
#include <cstdio>

#include "app/checkpoint_path.h"
#include "app/commands.h"
#include "cli/console.h"
#include "core/error.h"
#include "data/checkpoint.h"
#include "data/event_reader.h"
#include "data/safetensors.h"

namespace towers::app {
namespace {

bool holds_events(const std::filesystem::path& path) {
  // By the name too: a damaged one shall be told so, not looked for as a checkpoint.
  return path.filename().string().find(".tfevents.") != std::string::npos ||
         data::is_event_file(path);
}

}  // namespace

TensorFile open_tensors(const std::filesystem::path& path) {
  if (path.extension() == ".safetensors")
    return {path.string(), std::make_unique<data::SafetensorsReader>(path)};
  const std::filesystem::path prefix = find_checkpoint(path);
  return {prefix.string(), std::make_unique<data::CheckpointReader>(prefix)};
}

std::vector<double> read_values(const data::TensorReader& reader, const data::TensorInfo& info) {
  std::size_t size = 1;
  for (std::int64_t d : info.shape) size *= static_cast<std::size_t>(d);
  std::vector<double> values(size);
  reader.read(info.name, values);
  return values;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::int64_t d : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(d);
  return text + "]";
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

int run_inspect(const cli::InspectOptions& options) {
  const std::vector<std::string>& paths = options.arguments;
  if (options.diff) {
    if (paths.size() != 2)
      throw UsageError("--diff compares two checkpoints: name " +
                       std::string(paths.size() < 2 ? "another one" : "no more"));
    inspect_difference(open_tensors(paths[0]), open_tensors(paths[1]), options.json);
  } else if (std::all_of(paths.begin(), paths.end(), holds_events)) {
    // A run that was resumed has several: each is told by itself, what is damaged at the end.
    std::string fault;
    for (const std::string& path : paths) {
      try {
        inspect_events(path, options.json);
      } catch (const Error& error) {
        if (!fault.empty()) cli::log_error(fault);
        fault = error.what();
      }
    }
    if (!fault.empty()) throw Error(fault);
  } else if (paths.size() == 1) {
    inspect_tensors(open_tensors(paths[0]), options.json);
  } else {
    throw UsageError(
        "towers inspect lists one checkpoint, or any number of event files; to compare two "
        "checkpoints, give --diff");
  }
  return 0;
}

}  // namespace towers::app
