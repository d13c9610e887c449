#pragma once
// What each command was told, as plain structs: filled by cli/parse.h, read by app/. The defaults
// live here alone; cli/flags.h reads them for --help.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace towers::cli {

struct CommonOptions {
  std::string data_dir = "/tmp/cifar10_data";
  std::string dataset = "cifar10";  // cifar10, synthetic
  std::string data_url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
  std::string data_sha256;  // empty: the official archive's for the official address
  bool download = true;
  int batch_size = 128;         // per tower
  std::string device = "auto";  // auto, cpu, gpu
  bool allow_soft_placement = true;
  bool log_device_placement = false;
  std::string precision = "fp32";    // fp32, bf16, fp16, fp64
  bool allow_tf32 = false;           // fp32 products on GPUs may round their inputs
  bool use_fp16 = false;             // parse() has already turned it into precision fp16
  int compute_threads = 0;           // 0: from the affinity mask and the cgroup quota
  std::optional<int> input_threads;  // unset: chosen; 0: synchronous
  int cpu_devices = 1;
  bool pin_threads = false;  // each compute thread on a processor of its own
  int first_processor = 0;   // where these begin: app/ settles it, there is no flag
  std::string simd = "auto";
  std::string log_level = "info";  // debug, info, warning, error, off
  bool quiet = false;
  std::vector<std::string> arguments;  // the words of a command that takes some: files, checkpoints
  std::vector<std::string> flagfiles;  // that were read, in the order of their ends
};

// Several processes: parameter servers and workers.
struct ClusterOptions : CommonOptions {
  std::string ps_hosts, worker_hosts;  // host:port,host:port
  std::string job_name;                // ps, worker
  int task_index = 0;
  int issync = 0;                            // 1: synchronous
  std::optional<int> replicas_to_aggregate;  // unset: all workers
  std::string ps_placement = "round_robin";  // round_robin, bytes
  std::string push_precision = "fp32";       // fp32, bf16
  std::string pull_precision = "fp32";       // fp32, bf16
  double worker_timeout = 10;                // seconds
  double cluster_timeout = 300;
  bool ps_keep_serving = false;
  bool stop_on_lost_worker = false;
  std::string cluster_token_file;         // empty: none
  std::string tls_cert, tls_key, tls_ca;  // all or none
};

// Flags of several commands, but not of all: a flag is bound to one field.
struct SharedOptions : ClusterOptions {
  std::string train_dir = "/tmp/cifar10_train";
  std::string checkpoint_dir = "/tmp/cifar10_train";
  std::string eval_data = "test";  // test, train_eval
  std::int64_t num_examples = 10000;
  bool raw_weights = false;
  bool json = false;
  std::string output;
  std::string input = "auto";  // auto, host, device
};

struct TrainOptions : SharedOptions {
  int num_gpus = 1;  // number of towers
  std::int64_t max_steps = 1000000;
  double max_seconds = 0;     // 0: no limit
  double stall_seconds = 60;  // 0: nobody watches
  bool overwrite = false;
  bool resume = false;
  std::string init_from;  // empty: initial values are drawn
  std::optional<std::uint64_t> seed;
  double learning_rate = 0.1;
  double learning_rate_decay = 0.1;
  double epochs_per_decay = 350;
  double moving_average_decay = 0.9999;
  double weight_decay = 0.004;
  std::string decay_by = "steps";  // steps, examples
  std::int64_t display_every = 10;
  std::int64_t summary_every = 100;
  std::int64_t checkpoint_every = 1000;
  int max_to_keep = 5;          // 0: all
  std::int64_t eval_every = 0;  // 0: never
  std::string metrics_log;      // empty: none
  std::string trace_file;       // empty: none
  std::int64_t trace_steps = 1000;
  bool progress = false;
  bool deterministic = false;
  std::string convolution = "auto";  // auto, winograd4, winograd2, direct
};

struct EvalOptions : SharedOptions {
  std::string eval_dir = "/tmp/cifar10_eval";
  double eval_interval_secs = 300;
  bool run_once = false;
};

struct DevicesOptions : SharedOptions {};

struct DownloadOptions : CommonOptions {};

struct LinearOptions : ClusterOptions {
  double learning_rate = 0.00003;
  std::int64_t steps_to_validate = 1000;
  std::int64_t max_steps = 1000000;
  std::string checkpoint_dir = "./checkpoint/";
  double save_model_secs = 60;
  std::optional<std::uint64_t> seed;
  bool reload = false;
};

struct InspectOptions : SharedOptions {
  bool diff = false;
};

struct ExportOptions : SharedOptions {
  std::string checkpoint = "/tmp/cifar10_train";  // a prefix, or a folder
  std::string format = "auto";                    // auto (by the output's name), safetensors, onnx
  bool preprocessing = false;
};

struct ImportOptions : SharedOptions {};

struct CompletionOptions : CommonOptions {};

struct PredictOptions : SharedOptions {
  std::string csv;  // empty: pictures; -: to stdout
  bool logits = false;
};

// Each combination of the lists is measured. The single values of the base that have a list here
// (batch_size, precision, compute_threads, input_threads) are set from it, one combination at a
// time.
struct BenchOptions : SharedOptions {
  BenchOptions();  // in options.cpp: inlined, it makes GCC 12 see strings without values

  std::string what = "step";  // step, input, train, layers
  std::vector<int> batch_sizes = {128};
  std::vector<int> tower_counts = {1};
  std::vector<std::string> precisions = {"fp32"};
  std::vector<int> thread_counts = {0};
  std::vector<int> input_thread_counts = {1};
  std::vector<std::string> convolutions = {"auto"};
  int warmup = 10;
  int repeats = 20;
  std::string csv;  // empty: no file
};

}  // namespace towers::cli
