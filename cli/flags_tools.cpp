// Evaluation, bench, export and import.

#include "cli/commands.h"
#include "cli/flag_rows.h"
#include "cli/list_values.h"

namespace towers::cli {

std::vector<Flag> evaluation_flags() {
  using O = EvalOptions;
  const auto group = Group::evaluation;
  return {
      only("checkpoint_dir", group, eval_bit | predict_bit, folder(&O::checkpoint_dir),
           "the train_dir of the run, for its latest checkpoint, or the name of one"),
      only("eval_dir", group, eval_bit, folder(&O::eval_dir),
           "where the event file with the precision goes"),
      only("eval_data", group, eval_bit | predict_bit,
           choice(&O::eval_data, {"test", "train_eval"}), "images to classify"),
      only("num_examples", group, eval_bit, whole(&O::num_examples, std::int64_t{1}),
           "how many of them"),
      only("run_once", group, eval_bit, boolean(&O::run_once),
           "evaluate the latest checkpoint and end"),
      only("eval_interval_secs", group, eval_bit, real(&O::eval_interval_secs),
           "seconds until the next look for a checkpoint"),
      only("raw_weights", group, eval_bit | predict_bit, boolean(&O::raw_weights),
           "use the variables, not their moving averages"),
  };
}

std::vector<Flag> bench_flags() {
  using O = BenchOptions;
  const auto axis = [](std::string name, Value value, std::string help) {
    return only(std::move(name), Group::sweep, bench_bit, std::move(value), std::move(help));
  };
  return {
      axis("batch_size", whole_list(&O::batch_sizes, 1, 65536), "examples per step in each tower"),
      axis("num_gpus", whole_list(&O::tower_counts, 1, 1024), "numbers of towers"),
      axis("precision", choice_list(&O::precisions, kPrecisions), "of the arithmetic"),
      axis("convolution", choice_list(&O::convolutions, kConvolutions),
           "of 5 x 5 kernels on the CPU"),
      axis("compute_threads", whole_list(&O::thread_counts, 0, 4096),
           "threads of all CPU devices; 0: as many as allowed"),
      axis("input_threads", whole_list(&O::input_thread_counts, 0, 1024),
           "threads that prepare batches for --what=input and train; 0: none, a batch is made when "
           "it is needed"),
      only("what", Group::run, bench_bit, choice(&O::what, {"step", "input", "train", "layers"}),
           "training steps on one batch, the making of batches, both, or a step's layers"),
      only("warmup", Group::run, bench_bit, whole(&O::warmup, 0, 1000000),
           "steps that are not measured, first"),
      only("repeats", Group::run, bench_bit, whole(&O::repeats, 1, 1000000),
           "measurements, each of as many steps as last 0.1 s"),
      only("csv", Group::output, bench_bit,
           text(&O::csv, "FILE", "the name of a file, or nothing", anything),
           "add rows to this file; combinations that it has already are left out"),
  };
}

std::vector<Flag> exchange_flags() {
  using O = ExportOptions;
  const auto group = Group::exchange;
  return {
      only("checkpoint", group, export_bit,
           text(&O::checkpoint, "CHECKPOINT", "the name of a checkpoint or folder", not_empty),
           "what to export: PREFIX, or a folder's latest"),
      only("format", group, export_bit, choice(&O::format, {"auto", "safetensors", "onnx"}),
           "auto goes by the ending of --output"),
      only("output", group, export_bit, file(&O::output), "the file to write"),
      only("train_dir", group, import_bit, folder(&SharedOptions::train_dir),
           "gets the checkpoint; a folder that holds none yet"),
      only("output", group, import_bit,
           text(&SharedOptions::output, "CHECKPOINT", "the name of a checkpoint", anything),
           "write a checkpoint of this name, PREFIX, instead of one in --train_dir"),
      only("preprocessing", group, export_bit, boolean(&O::preprocessing),
           "the ONNX model takes 32x32 images as bytes, not the evaluation's crops"),
      only("raw_weights", group, export_bit, boolean(&SharedOptions::raw_weights),
           "the ONNX model gets the variables, not their moving averages"),
  };
}

}  // namespace towers::cli
