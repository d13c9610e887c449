// `towers export`: a checkpoint as safetensors or as an ONNX model.

#include <filesystem>
#include <fstream>
#include <vector>

#include "app/checkpoint_path.h"
#include "app/commands.h"
#include "app/exchange_metadata.h"
#include "app/run_state.h"
#include "cli/console.h"
#include "core/error.h"
#include "core/models/cifar10.h"
#include "data/checkpoint.h"
#include "data/dataset.h"
#include "data/model_checkpoint.h"
#include "data/onnx.h"
#include "data/run_folder.h"
#include "data/safetensors.h"

namespace towers::app {
namespace {

std::string checked_format(const cli::ExportOptions& options) {
  if (options.output.empty())
    throw UsageError("towers export needs --output=FILE, for example --output=model.onnx");
  std::string format = options.format;
  if (format == "auto") {
    const std::string ending = std::filesystem::path(options.output).extension().string();
    if (ending != ".onnx" && ending != ".safetensors")
      throw UsageError("--output=" + options.output +
                       " ends in neither .onnx nor .safetensors: give --format=onnx or "
                       "--format=safetensors");
    format = ending.substr(1);
  }
  if (format == "safetensors" && options.raw_weights)
    throw UsageError("--raw_weights is for ONNX: safetensors holds the variables and the averages");
  if (format == "safetensors" && options.preprocessing)
    throw UsageError("--preprocessing is for ONNX: safetensors holds no computation");
  return format;
}

// An earlier export's model is written anew; another file keeps what it holds.
void refuse_other_file(const std::string& path, const std::string& format) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;  // which writing finds out
  std::ifstream file(path, std::ios::binary);
  char start[9] = "";
  file.read(start, sizeof start);
  if (!file.is_open() || file.gcount() == 0) return;
  // ONNX begins with its field 1, ir_version; safetensors with eight bytes of length, then JSON.
  const bool own = format == "onnx" ? start[0] == '\x08' : start[8] == '{';
  if (!own)
    throw Error("--output=" + path + " exists and is not in " + format +
                " format, so it was not touched; give another name");
}

data::Metadata metadata_of(const std::filesystem::path& prefix, std::int64_t step) {
  data::Metadata metadata = {{kMetadataStep, std::to_string(step)},
                             {kMetadataCheckpoint, prefix.filename().string()}};
  std::string classes;
  for (const char* name : data::class_names())
    classes += (classes.empty() ? "" : ",") + std::string(name);
  metadata[kMetadataClasses] = classes;
  const RunState state = read_run_state(prefix.parent_path());
  const std::string flags = portable_flags(state.flagfile);
  if (!flags.empty()) metadata[kMetadataFlags] = flags;
  const auto position = state.position.find(prefix.filename().string());
  if (position != state.position.end())
    metadata[kMetadataPosition] = std::to_string(position->second);
  return metadata;
}

void export_safetensors(const data::CheckpointReader& reader, const VariableLayout& layout,
                        const std::string& output, const data::Metadata& metadata) {
  std::vector<float> variables(layout.size()), averages(layout.size());
  data::restore_variables(reader, layout, variables);
  data::restore_averages(reader, layout, averages);
  const float step = static_cast<float>(data::restore_global_step(reader));
  data::write_safetensors(output, data::model_tensors(layout, variables, averages, step), metadata);
}

void export_onnx(const data::CheckpointReader& reader, const Net& net, const VariableLayout& layout,
                 const cli::ExportOptions& options, data::Metadata metadata) {
  std::vector<float> variables(layout.size());
  if (options.raw_weights)
    data::restore_variables(reader, layout, variables);
  else
    data::restore_averages(reader, layout, variables);
  metadata[kMetadataWeights] = options.raw_weights ? "variables" : "moving_averages";
  data::write_file_atomically(options.output,
                              data::onnx_model(net, layout, variables,
                                               {.preprocessing = options.preprocessing,
                                                .version = TOWERS_VERSION,
                                                .metadata = std::move(metadata)}));
}

}  // namespace

int run_export(const cli::ExportOptions& options) {
  if (options.output == "-")
    throw UsageError(
        "--output=- is no file: a model is written whole or not at all, so not to "
        "standard output; name a file");
  const std::filesystem::path output = std::filesystem::path(options.output).filename();
  if (output.extension() == ".index" || output.string().find(".data-") != std::string::npos)
    throw UsageError("--output=" + options.output + " names a file of a checkpoint; give another");
  const std::string format = checked_format(options);
  refuse_other_file(options.output, format);
  const Net net = cifar10_net();
  const VariableLayout layout(net);
  const std::filesystem::path prefix = find_checkpoint(options.checkpoint);
  const data::CheckpointReader reader(prefix);
  const std::int64_t step = data::restore_global_step(reader);
  const data::Metadata metadata = metadata_of(prefix, step);
  if (format == "onnx")
    export_onnx(reader, net, layout, options, metadata);
  else
    export_safetensors(reader, layout, options.output, metadata);
  cli::log_info("exported " + prefix.string() + " (global_step " + std::to_string(step) + ") to " +
                options.output + " (" + format + ", " +
                cli::human_bytes(std::filesystem::file_size(options.output)) + ")");
  return 0;
}

}  // namespace towers::app
