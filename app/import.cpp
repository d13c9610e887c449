// `towers import`: a checkpoint made of a safetensors file.

#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "app/commands.h"
#include "app/exchange_metadata.h"
#include "app/run_state.h"
#include "cli/console.h"
#include "cli/parse.h"
#include "core/error.h"
#include "core/models/cifar10.h"
#include "data/checkpoint.h"
#include "data/checkpoint_saver.h"
#include "data/model_checkpoint.h"
#include "data/run_folder.h"
#include "data/safetensors.h"

namespace towers::app {
namespace {

std::optional<std::uint64_t> number_in(const data::SafetensorsReader& reader, const char* key) {
  const auto found = reader.metadata().find(key);
  if (found == reader.metadata().end()) return {};
  const std::string& text = found->second;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // A checkpoint's step is a float32, and reads back as a std::int64_t.
  if (error != std::errc() || end != text.data() + text.size() || number > (1ULL << 62))
    throw Error(reader.source() + ": " + key +
                " in its metadata is not a number of steps or examples");
  return number;
}

// Of files that others wrote: a tensor of one whole number.
std::uint64_t step_in_tensor(const data::SafetensorsReader& reader) {
  float step = 0;
  reader.read("global_step", std::span(&step, 1));
  if (!(step >= 0 && step <= 9e15f) || step != std::floor(step))
    throw Error(reader.source() + ": its global_step is not a number of steps");
  return static_cast<std::uint64_t>(step);
}

struct Model {
  std::vector<float> variables, averages;
  std::uint64_t step = 0;
};

Model read_model(const data::SafetensorsReader& reader, const VariableLayout& layout) {
  Model model{std::vector<float>(layout.size()), std::vector<float>(layout.size()), 0};
  data::restore_variables(reader, layout, model.variables);
  if (data::has_averages(reader, layout)) {
    data::restore_averages(reader, layout, model.averages);
  } else {
    model.averages = model.variables;
    cli::log_warning(reader.source() + " has no moving averages; they start at the variables");
  }
  if (const auto step = number_in(reader, kMetadataStep))
    model.step = *step;
  else if (reader.contains("global_step"))
    model.step = step_in_tensor(reader);
  else
    cli::log_warning(reader.source() + " has no global_step; it is taken as 0");
  return model;
}

// So that the imported run goes on where the exported one stopped: its flags, its place in the
// stream of examples.
void write_run_state(const data::SafetensorsReader& reader, const std::filesystem::path& folder,
                     const std::string& checkpoint) {
  const auto flags = reader.metadata().find(kMetadataFlags);
  if (flags == reader.metadata().end()) return;
  RunState state;
  state.flagfile = cli::with_flag(portable_flags(flags->second), "train_dir",
                                  std::filesystem::absolute(folder).string());
  if (const auto position = number_in(reader, kMetadataPosition))
    state.position[checkpoint] = *position;
  data::write_file_atomically(folder / data::kFlagsFile, to_text(state));
}

// A checkpoint of that name is not written over, and nothing is put among the checkpoints of a run
// that is under way: it may soon write, or delete, one of that name.
void refuse_taken(const std::filesystem::path& prefix) {
  std::error_code ignored;
  if (std::filesystem::exists(prefix.string() + ".index", ignored))
    throw Error("--output=" + prefix.string() + ": this checkpoint exists and was not " +
                "touched; give another name, or delete it first");
  const std::filesystem::path folder = prefix.parent_path();
  if (data::is_in_use(folder.empty() ? "." : folder))
    throw Error("--output=" + prefix.string() +
                " lies in the folder of a running training; give another folder");
}

}  // namespace

int run_import(const cli::ImportOptions& options) {
  const VariableLayout layout(cifar10_net());
  if (!options.output.empty()) refuse_taken(options.output);
  const data::SafetensorsReader reader(options.arguments.front());
  const Model model = read_model(reader, layout);
  const float step = static_cast<float>(model.step);
  const auto tensors = data::model_tensors(layout, model.variables, model.averages, step);
  std::filesystem::path prefix = options.output;
  std::string go_on;
  if (prefix.empty()) {
    const data::RunFolder folder(options.train_dir, data::RunFolder::Mode::resume);
    if (!folder.checkpoints().empty())
      throw Error("--train_dir=" + options.train_dir +
                  " holds a run's checkpoints; import into another folder, or to --output=PREFIX");
    for (const std::string_view name : {data::kStateFile, data::kFlagsFile})
      if (std::filesystem::exists(folder.path() / name))
        throw Error((folder.path() / name).string() +
                    " exists already; import into another folder, or to "
                    "--output=PREFIX");
    // As the trainer names them: the file has the last step's number, global_step counts updates.
    prefix = data::checkpoint_prefix(
        folder.path(), static_cast<std::int64_t>(model.step == 0 ? 0 : model.step - 1));
    data::write_checkpoint(prefix, tensors);
    write_run_state(reader, folder.path(), prefix.filename().string());
    go_on = "; go on with: " + resume_command(folder.path());
    data::write_checkpoint_state(folder.path(), {.latest = prefix, .all = {prefix}, .warning = ""});
  } else {
    data::write_checkpoint(prefix, tensors);
  }
  cli::log_info("imported " + reader.source() + " (global_step " + std::to_string(model.step) +
                ") as " + prefix.string() + go_on);
  return 0;
}

}  // namespace towers::app
