#include "cli/commands.h"

#include <algorithm>
#include <limits>

namespace towers::cli {
namespace {

template <class Options>
Command make() {
  return Options{};
}

}  // namespace

const std::vector<CommandRow>& commands() {
  static const std::vector<CommandRow> rows{
      {train_bit,
       "train",
       "Trains a network on CIFAR-10, one tower per device",
       "[train] [--flag=value ...]",
       {"towers --max_steps=10000 --train_dir=run1", "towers --train_dir=run1 --resume"},
       "",
       make<TrainOptions>},
      {eval_bit,
       "eval",
       "Measures the precision of a run's checkpoints as they come",
       "eval [--flag=value ...]",
       {"towers eval --checkpoint_dir=run1 --run_once",
        "towers eval --checkpoint_dir=run1 --eval_interval_secs=60"},
       "",
       make<EvalOptions>},
      {predict_bit,
       "predict",
       "Classifies pictures, or every image of the data set",
       "predict FILE ... [--flag=value ...]",
       {"towers predict cat.png dog.jpg --checkpoint_dir=run1",
        "towers predict --csv=test.csv --eval_data=test --checkpoint_dir=run1"},
       "FILE",
       make<PredictOptions>,
       0,
       std::numeric_limits<std::size_t>::max()},
      {devices_bit,
       "devices",
       "Lists the devices that towers can run on",
       "devices [--flag=value ...]",
       {"towers devices", "towers devices --json"},
       "",
       make<DevicesOptions>},
      {download_bit,
       "download",
       "Fetches, checks and unpacks the data set",
       "download [--flag=value ...]",
       {"towers download --data_dir=data",
        "towers download --data_url=file:///mnt/cifar-10-binary.tar.gz"},
       "",
       make<DownloadOptions>},
      {inspect_bit,
       "inspect",
       "Lists what a checkpoint or an event file holds",
       "inspect PATH ... [--diff] [--flag=value ...]",
       {"towers inspect run1/model.ckpt-9999", "towers inspect run1/events.out.tfevents.*",
        "towers inspect --diff run1/model.ckpt-0 run1/model.ckpt-9999"},
       "PATH",
       make<InspectOptions>,
       1,
       std::numeric_limits<std::size_t>::max()},
      {linear_bit,
       "linear",
       "Fits a line, alone or with parameter servers and workers",
       "linear [--flag=value ...]",
       {"towers linear --learning_rate=0.001 --max_steps=10000", "towers linear --reload"},
       "",
       make<LinearOptions>},
      {bench_bit,
       "bench",
       "Measures training steps, the input, both, or the step's layers",
       "bench [--flag=value ...]",
       {"towers bench --batch_size=32,128,512 --compute_threads=1,2 --csv=sweep.csv",
        "towers bench --what=layers"},
       "",
       make<BenchOptions>},
      {export_bit,
       "export",
       "Writes a checkpoint as safetensors or as an ONNX model",
       "export --output=FILE [--flag=value ...]",
       {"towers export --checkpoint=run1 --output=model.onnx",
        "towers export --checkpoint=run1/model.ckpt-9999 --output=model.safetensors"},
       "",
       make<ExportOptions>},
      {import_bit,
       "import",
       "Makes a checkpoint from a safetensors file, to resume from",
       "import FILE [--flag=value ...]",
       {"towers import model.safetensors --train_dir=run2",
        "towers import model.safetensors --output=model.ckpt"},
       "FILE",
       make<ImportOptions>},
      {completion_bit,
       "completion",
       "Prints the completion script for bash, zsh or fish",
       "completion SHELL",
       {"towers completion bash", "towers completion fish"},
       "SHELL",
       make<CompletionOptions>,
       1,
       1,
       {"bash", "zsh", "fish"}},
  };
  return rows;
}

const CommandRow* find_command(std::string_view name) {
  const auto& rows = commands();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [name](const CommandRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace towers::cli
