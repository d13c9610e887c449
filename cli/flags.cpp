#include "cli/flags.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "cli/commands.h"
#include "cli/list_values.h"

namespace towers::cli {
namespace {

bool anything(std::string_view) {
  return true;
}
bool not_empty(std::string_view text) {
  return !text.empty();
}

bool is_address(std::string_view text) {
  return text.starts_with("https://") || text.starts_with("http://") || text.starts_with("file://");
}

bool is_sha256_or_empty(std::string_view text) {
  return text.empty() || (text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
                            return std::isxdigit(static_cast<unsigned char>(c)) != 0;
                          }));
}

template <class Options>
Value folder(std::string Options::*field) {
  return text(field, "DIR", "the name of a folder", not_empty);
}

// Empty: none.
template <class Options>
Value file(std::string Options::*field) {
  return text(field, "FILE", "the name of a file", anything);
}

Value with_default_text(Value value, std::string shown) {
  value.default_text = std::move(shown);
  return value;
}

// A flag that is written as another one: it has no line in a flagfile.
Value without_line(Value value) {
  value.get = [](const CommonOptions&) { return std::nullopt; };
  return value;
}

// Handled by the parser itself, before any options.
Value parser_switch() {
  Value value;
  value.boolean = true;
  value.expected = "true or false";
  value.set = [](CommonOptions&, std::string_view text) { return read_boolean(text).has_value(); };
  return without_line(value);
}

Value parser_file() {
  Value value;
  value.placeholder = "FILE";
  value.expected = "the name of a file";
  return without_line(value);
}

// A flag that every command accepts, so that one flagfile serves them all; help lists it where it
// does something.
Flag common(std::string name, Group group, unsigned used, Value value, std::string help) {
  return {std::move(name), group, every_bit, used, std::move(value), std::move(help)};
}

Flag only(std::string name, Group group, unsigned commands, Value value, std::string help) {
  return {std::move(name), group, commands, commands, std::move(value), std::move(help)};
}

// bench has a row of its own for it.
Flag but_for_bench(Flag flag) {
  flag.accepted &= ~unsigned{bench_bit};
  return flag;
}

const std::vector<std::string> kPrecisions{"fp32", "bf16", "fp16", "fp64"};
const std::vector<std::string> kConvolutions{"auto", "winograd4", "winograd2", "direct"};

std::vector<Flag> data_flags() {
  using O = CommonOptions;
  const auto group = Group::data;
  const unsigned all = train_bit | eval_bit | download_bit | bench_bit | predict_bit;
  return {
      common("data_dir", group, all, folder(&O::data_dir),
             "holds cifar-10-batches-bin, or is that folder"),
      common("dataset", group, train_bit | eval_bit | bench_bit | predict_bit,
             choice(&O::dataset, {"cifar10", "synthetic"}),
             "real images, or computed ones that need no files"),
      common("download", group, all, boolean(&O::download),
             "fetch what is missing; off: no network, print the address and the path instead"),
      common("data_url", group, all,
             with_default_text(text(&O::data_url, "URL",
                                    "an address that begins with https://, http:// or "
                                    "file://",
                                    is_address),
                               "the official one"),
             "where the archive comes from"),
      common("data_sha256", group, all,
             text(&O::data_sha256, "HEX", "64 hexadecimal digits", is_sha256_or_empty),
             "digest of the archive at another address"),
      but_for_bench(common("batch_size", group, train_bit | eval_bit | predict_bit,
                           whole(&O::batch_size, 1, 65536), "examples per step in each tower")),
      but_for_bench(
          common("input_threads", group, train_bit,
                 with_default_text(whole(&O::input_threads, 0, 1024), "1"),
                 "threads that prepare batches; 0: none, a batch is made when it is needed")),
  };
}

std::vector<Flag> run_flags() {
  using O = TrainOptions;
  const auto group = Group::run;
  return {
      only("max_steps", group, train_bit, whole(&O::max_steps, std::int64_t{0}),
           "steps in all, those before a resume too"),
      only("max_seconds", group, train_bit, real(&O::max_seconds),
           "save and end after so many seconds; 0: no limit"),
      only("stall_seconds", group, train_bit, real(&O::stall_seconds),
           "say what a run waits for that has not moved for so long; 0: do not"),
      only("train_dir", group, train_bit | import_bit, folder(&O::train_dir),
           "where checkpoints and events go; a new run deletes an earlier one's files there"),
      only("overwrite", group, train_bit, boolean(&O::overwrite),
           "start beside files of others, which stay"),
      only("resume", group, train_bit, boolean(&O::resume),
           "go on from the latest checkpoint of train_dir"),
      only("init_from", group, train_bit,
           text(&O::init_from, "CHECKPOINT", "the name of a checkpoint", anything),
           "start at step 0 with the variables of another run"),
      only("seed", group, train_bit, with_default_text(whole(&O::seed, std::uint64_t{0}), "random"),
           "equal seeds give equal runs"),
  };
}

std::vector<Flag> linear_flags() {
  using O = LinearOptions;
  const RealRange positive{.lowest = 0, .lowest_allowed = false};
  return {
      only("max_steps", Group::run, linear_bit,
           whole(&O::max_steps, std::int64_t{0}, std::int64_t{2147483647}),
           "updates in all, those before a restart too"),
      only("checkpoint_dir", Group::run, linear_bit, folder(&O::checkpoint_dir),
           "where the chief saves, and restores from at its start"),
      only("save_model_secs", Group::run, linear_bit, real(&O::save_model_secs, positive),
           "seconds between checkpoints"),
      only("reload", Group::run, linear_bit, boolean(&O::reload),
           "print what the latest checkpoint holds, and end"),
      only("seed", Group::run, linear_bit,
           with_default_text(whole(&O::seed, std::uint64_t{0}), "random"),
           "of the initial values and the examples"),
      only("learning_rate", Group::optimization, linear_bit, real(&O::learning_rate),
           "learning rate of all steps"),
      only("steps_to_validate", Group::output, linear_bit,
           whole(&O::steps_to_validate, std::int64_t{1}), "steps from one line to the next"),
  };
}

std::vector<Flag> cluster_flags() {
  using O = ClusterOptions;
  const auto group = Group::cluster;
  const unsigned commands = linear_bit;
  const RealRange patience{.lowest = 0, .highest = 86400, .lowest_allowed = false};
  return {
      only("ps_hosts", group, commands,
           text(&O::ps_hosts, "LIST", "addresses host:port with commas between", anything),
           "addresses of the parameter servers, host:port,host:port"),
      only("worker_hosts", group, commands,
           text(&O::worker_hosts, "LIST", "addresses host:port with commas between", anything),
           "addresses that name the workers; the first is the chief"),
      only("job_name", group, commands, text(&O::job_name, "JOB", "ps or worker", anything),
           "what this process is: ps or worker"),
      only("task_index", group, commands, whole(&O::task_index, 0),
           "which one of its list this process is"),
      only("issync", group, commands, whole(&O::issync, 0, 1),
           "1: an update is the mean of all workers' gradients; 0: each gradient is an update"),
      only("replicas_to_aggregate", group, commands,
           with_default_text(whole(&O::replicas_to_aggregate, 1, 65536), "all workers"),
           "gradients per synchronous update; fewer leave backup workers"),
      only("worker_timeout", group, commands, real(&O::worker_timeout, patience),
           "seconds of silence after which a worker is lost"),
      only("cluster_timeout", group, commands, real(&O::cluster_timeout, patience),
           "seconds to wait for a task that is missing"),
      only("ps_keep_serving", group, commands, boolean(&O::ps_keep_serving),
           "servers stay after the last worker's goodbye"),
      only("stop_on_lost_worker", group, commands, boolean(&O::stop_on_lost_worker),
           "servers end the training rather than go on with those left"),
      only("cluster_token_file", group, commands, file(&O::cluster_token_file),
           "holds a secret that all tasks must have"),
      only("tls_cert", group, commands, file(&O::tls_cert),
           "this task's certificate: peers must have one too, and all is encrypted"),
      only("tls_key", group, commands, file(&O::tls_key), "its key"),
      only("tls_ca", group, commands, file(&O::tls_ca), "the authority that signed everybody's"),
  };
}

std::vector<Flag> optimization_flags() {
  using O = TrainOptions;
  const auto group = Group::optimization;
  const RealRange fraction{0, 1, true};
  const RealRange positive{.lowest = 0, .lowest_allowed = false};
  return {
      only("learning_rate", group, train_bit, real(&O::learning_rate),
           "learning rate of the first steps"),
      only("learning_rate_decay", group, train_bit, real(&O::learning_rate_decay, fraction),
           "factor at each decay"),
      only("epochs_per_decay", group, train_bit, real(&O::epochs_per_decay, positive),
           "passes over the data between two decays"),
      only("decay_by", group, train_bit, choice(&O::decay_by, {"steps", "examples"}),
           "count epochs by one tower's steps, as TensorFlow does, or by the examples of all"),
      only("moving_average_decay", group, train_bit, real(&O::moving_average_decay, fraction),
           "of the averages of the variables, which eval uses"),
      only("weight_decay", group, train_bit, real(&O::weight_decay),
           "of the weights of local3 and local4"),
  };
}

std::vector<Flag> device_flags() {
  using O = CommonOptions;
  const auto group = Group::devices;
  const unsigned both = train_bit | eval_bit | predict_bit;
  const unsigned running = both | bench_bit;
  return {
      only("num_gpus", group, train_bit, whole(&TrainOptions::num_gpus, 1, 1024),
           "number of towers"),
      common("device", group, running | devices_bit, choice(&O::device, {"auto", "cpu", "gpu"}),
             "auto takes GPUs where usable, else the CPU"),
      common("allow_soft_placement", group, train_bit | bench_bit,
             boolean(&O::allow_soft_placement),
             "let towers share a device where there are too few; off: an error"),
      common("log_device_placement", group, both, boolean(&O::log_device_placement),
             "print each layer and its device once"),
      but_for_bench(common("precision", group, both, choice(&O::precision, kPrecisions),
                           "of the arithmetic")),
      but_for_bench(common("use_fp16", group, both, without_line(boolean(&O::use_fp16)),
                           "the same as --precision=fp16")),
      common("allow_tf32", group, running, boolean(&O::allow_tf32),
             "let GPUs round the inputs of fp32 products to TF32: faster, about three digits"),
      but_for_bench(common("compute_threads", group, both | devices_bit,
                           with_default_text(whole(&O::compute_threads, 0, 4096), "0"),
                           "of all CPU devices; 0: as many as allowed")),
      common("cpu_devices", group, running | devices_bit, whole(&O::cpu_devices, 1, 1024),
             "number of devices to split the CPU into"),
      common("simd", group, running | devices_bit,
             text(&O::simd, "TARGET", "auto or the name of a vector target", not_empty),
             "vector instructions of the CPU, by name"),
      only("convolution", group, train_bit, choice(&TrainOptions::convolution, kConvolutions),
           "of 5 x 5 kernels; auto takes the fastest, other kernels are direct; GPUs: auto or "
           "direct"),
      only("deterministic", group, train_bit, boolean(&TrainOptions::deterministic),
           "equal bytes from GPUs too; the CPU's always are"),
  };
}

std::vector<Flag> output_flags() {
  using O = TrainOptions;
  const auto group = Group::output;
  const std::int64_t one = 1;
  return {
      only("display_every", group, train_bit, whole(&O::display_every, one),
           "steps from one line to the next"),
      only("summary_every", group, train_bit, whole(&O::summary_every, one),
           "steps between summaries for TensorBoard"),
      only("checkpoint_every", group, train_bit, whole(&O::checkpoint_every, one),
           "steps between checkpoints; the last is saved too"),
      only("max_to_keep", group, train_bit, whole(&O::max_to_keep, 0),
           "newest checkpoints to keep; 0: all"),
      only("eval_every", group, train_bit, whole(&O::eval_every, std::int64_t{0}),
           "steps between evaluations; 0: none"),
      only("metrics_log", group, train_bit, file(&O::metrics_log),
           "a .csv or .jsonl file that gets a row with each line; resuming goes on in it"),
      only("json", group, devices_bit | inspect_bit | predict_bit | bench_bit,
           boolean(&SharedOptions::json), "print JSON"),
      only("diff", group, inspect_bit, boolean(&InspectOptions::diff), "compare two checkpoints"),
      only("csv", group, predict_bit, file(&PredictOptions::csv),
           "a line for each image of --eval_data (index, label, class, probability); -: to stdout"),
      only("logits", group, predict_bit, boolean(&PredictOptions::logits),
           "with --csv: each class's logit, too"),
  };
}

std::vector<Flag> evaluation_flags() {
  using O = EvalOptions;
  const auto group = Group::evaluation;
  return {
      only("checkpoint_dir", group, eval_bit | predict_bit, folder(&O::checkpoint_dir),
           "the train_dir of the run"),
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
      only("raw_weights", group, eval_bit | predict_bit | export_bit, boolean(&O::raw_weights),
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
      axis("convolution", choice_list(&O::convolutions, kConvolutions), "on the CPU"),
      axis("compute_threads", whole_list(&O::thread_counts, 0, 4096),
           "of all CPU devices; 0: as many as allowed"),
      axis("input_threads", whole_list(&O::input_thread_counts, 0, 1024),
           "that prepare batches for input and train; 0: none, they are made when needed"),
      only("what", Group::run, bench_bit, choice(&O::what, {"step", "input", "train", "layers"}),
           "training steps on one batch, the making of batches, both, or a step's layers"),
      only("warmup", Group::run, bench_bit, whole(&O::warmup, 0, 1000000),
           "steps that are not measured, first"),
      only("repeats", Group::run, bench_bit, whole(&O::repeats, 1, 1000000),
           "measurements, each of as many steps as last 0.1 s"),
      only("csv", Group::output, bench_bit,
           text(&O::csv, "FILE", "the name of a file, or nothing", anything),
           "add rows to it; combinations that it holds already are left out"),
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
      only("output", group, export_bit | import_bit, file(&O::output),
           "the file to write; import: a checkpoint of this name in place of train_dir"),
      only("preprocessing", group, export_bit, boolean(&O::preprocessing),
           "the ONNX model takes 32x32 images as bytes, not the evaluation's crops"),
  };
}

std::vector<Flag> general_flags() {
  using O = CommonOptions;
  const auto group = Group::general;
  return {
      common("log_level", group, every_bit,
             choice(&O::log_level, {"debug", "info", "warning", "error", "off"}),
             "least severe of the lines on stderr"),
      common("quiet", group, every_bit, boolean(&O::quiet),
             "no tables; warnings and errors alone on stderr"),
      common("flagfile", group, every_bit, parser_file(),
             "more flags, one a line; # begins a comment"),
      common("help", group, every_bit, parser_switch(), "print this"),
      common("version", group, every_bit, parser_switch(), "print what is compiled in"),
  };
}

}  // namespace

const std::vector<Flag>& flags() {
  static const std::vector<Flag> rows = [] {
    std::vector<Flag> all;
    for (auto& group : {run_flags(), linear_flags(), cluster_flags(), exchange_flags(),
                        evaluation_flags(), data_flags(), optimization_flags(), device_flags(),
                        output_flags(), bench_flags(), general_flags()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    return all;
  }();
  return rows;
}

std::string_view title(Group group) {
  switch (group) {
    case Group::run:
      return "Run";
    case Group::cluster:
      return "Several processes";
    case Group::sweep:
      return "Sweep: each combination of these lists is measured";
    case Group::data:
      return "Data";
    case Group::optimization:
      return "Optimization";
    case Group::devices:
      return "Devices";
    case Group::output:
      return "Output";
    case Group::evaluation:
      return "Evaluation";
    case Group::exchange:
      return "Export and import";
    case Group::general:
      return "General";
  }
  return "";
}

const Flag* find_flag(std::string_view name) {
  const auto& rows = flags();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [name](const Flag& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace towers::cli
