// The table of flags against what is promised: names, defaults, limits.
#include <catch2/catch.hpp>
#include <set>
#include <utility>

#include "cli/commands.h"
#include "cli/flags.h"
#include "tests/cli/parsing.h"

using namespace towers::cli;
using namespace towers::test;

namespace {

// The flags of all commands, in the order of the table, between those of train.
const std::string cluster_defaults =
    "--ps_hosts=\n"
    "--worker_hosts=\n"
    "--job_name=\n"
    "--task_index=0\n"
    "--issync=0\n"
    "--ps_placement=round_robin\n"
    "--push_precision=fp32\n";
const std::string patience_defaults =
    "--worker_timeout=10\n"
    "--cluster_timeout=300\n"
    "--ps_keep_serving=false\n"
    "--stop_on_lost_worker=false\n"
    "--cluster_token_file=\n"
    "--tls_cert=\n"
    "--tls_key=\n"
    "--tls_ca=\n";
const std::string data_defaults =
    "--data_dir=/tmp/cifar10_data\n"
    "--dataset=cifar10\n"
    "--download=true\n"
    "--data_url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz\n"
    "--data_sha256=\n"
    "--batch_size=128\n";
const std::string device_defaults =
    "--device=auto\n"
    "--allow_soft_placement=true\n"
    "--log_device_placement=false\n"
    "--precision=fp32\n"
    "--allow_tf32=false\n"
    "--compute_threads=0\n"
    "--cpu_devices=1\n"
    "--pin_threads=false\n"
    "--simd=auto\n";
const std::string general_defaults =
    "--log_level=info\n"
    "--quiet=false\n";

}  // namespace

TEST_CASE("every flag of train has the promised default") {
  CHECK(parsed({}).flagfile ==
        "--max_steps=1000000\n"
        "--max_seconds=0\n"
        "--stall_seconds=60\n"
        "--train_dir=/tmp/cifar10_train\n"
        "--overwrite=false\n"
        "--resume=false\n"
        "--init_from=\n" +
            cluster_defaults + "--pull_precision=fp32\n" + patience_defaults + data_defaults +
            "--input=auto\n"
            "--learning_rate=0.1\n"
            "--learning_rate_decay=0.1\n"
            "--epochs_per_decay=350\n"
            "--decay_by=steps\n"
            "--moving_average_decay=0.9999\n"
            "--weight_decay=0.004\n"
            "--num_gpus=1\n" +
            device_defaults +
            "--convolution=auto\n"
            "--deterministic=false\n"
            "--display_every=10\n"
            "--summary_every=100\n"
            "--checkpoint_every=1000\n"
            "--max_to_keep=5\n"
            "--eval_every=0\n"
            "--metrics_log=\n"
            "--trace_file=\n"
            "--trace_steps=1000\n"
            "--progress=false\n" +
            general_defaults);
}

TEST_CASE("every flag of the other commands has the promised default") {
  CHECK(parsed({"eval"}).flagfile ==
        "--checkpoint_dir=/tmp/cifar10_train\n"
        "--eval_dir=/tmp/cifar10_eval\n"
        "--eval_data=test\n"
        "--num_examples=10000\n"
        "--run_once=false\n"
        "--eval_interval_secs=300\n"
        "--raw_weights=false\n" +
            data_defaults + device_defaults + general_defaults);
  CHECK(parsed({"download"}).flagfile == data_defaults + device_defaults + general_defaults);
  const std::string listing = data_defaults + device_defaults + "--json=false\n" + general_defaults;
  CHECK(parsed({"devices"}).flagfile == listing);
  CHECK(parsed({"inspect", "x"}).flagfile ==
        data_defaults + device_defaults + "--json=false\n--diff=false\n" + general_defaults);
  CHECK(parsed({"linear"}).flagfile ==
        "--max_steps=1000000\n"
        "--checkpoint_dir=./checkpoint/\n"
        "--save_model_secs=60\n"
        "--reload=false\n"
        "--learning_rate=3e-05\n"
        "--steps_to_validate=1000\n" +
            cluster_defaults + patience_defaults + data_defaults + device_defaults +
            general_defaults);
  CHECK(parsed({"export"}).flagfile ==
        "--checkpoint=/tmp/cifar10_train\n"
        "--format=auto\n"
        "--output=\n"
        "--preprocessing=false\n"
        "--raw_weights=false\n" +
            data_defaults + device_defaults + general_defaults);
  CHECK(parsed({"predict"}).flagfile ==
        "--checkpoint_dir=/tmp/cifar10_train\n"
        "--eval_data=test\n"
        "--raw_weights=false\n" +
            data_defaults + device_defaults +
            "--json=false\n"
            "--csv=\n"
            "--logits=false\n" +
            general_defaults);
  CHECK(parsed({"import", "x"}).flagfile == "--train_dir=/tmp/cifar10_train\n--output=\n" +
                                                data_defaults + device_defaults + general_defaults);
}

TEST_CASE("every flag of bench has the promised default") {
  CHECK(parsed({"bench"}).flagfile ==
        "--data_dir=/tmp/cifar10_data\n"
        "--dataset=cifar10\n"
        "--download=true\n"
        "--data_url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz\n"
        "--data_sha256=\n"
        "--input=auto\n"
        "--device=auto\n"
        "--allow_soft_placement=true\n"
        "--log_device_placement=false\n"
        "--allow_tf32=false\n"
        "--cpu_devices=1\n"
        "--pin_threads=false\n"
        "--simd=auto\n"
        "--json=false\n"
        "--batch_size=128\n"
        "--num_gpus=1\n"
        "--precision=fp32\n"
        "--convolution=auto\n"
        "--compute_threads=0\n"
        "--input_threads=1\n"
        "--what=step\n"
        "--warmup=10\n"
        "--repeats=20\n"
        "--csv=\n" +
            general_defaults);
}

TEST_CASE("no command has a name twice, and every row is whole") {
  std::set<std::pair<std::string, unsigned>> names;
  for (const Flag& flag : flags()) {
    INFO(flag.name);
    for (const CommandRow& command : commands())
      if ((flag.accepted & command.bit) != 0)
        CHECK(names.insert({flag.name, unsigned{command.bit}}).second);
    REQUIRE(find_flag(flag.name) != nullptr);
    // What finds a flag by its name alone asks whether it is a switch.
    CHECK(find_flag(flag.name)->value.boolean == flag.value.boolean);
    // --noNAME and --NAME must not both be names.
    CHECK(find_flag("no" + flag.name) == nullptr);
    CHECK_FALSE(flag.help.empty());
    CHECK_FALSE(flag.value.expected.empty());
    CHECK(flag.used != 0);
    CHECK((flag.used & ~flag.accepted) == 0);
    CHECK((flag.accepted & ~unsigned{every_bit}) == 0);
    CHECK(flag.value.placeholder.empty() == flag.value.boolean);
  }
}

TEST_CASE("the defaults are values that the flags take") {
  for (const CommandRow& command : commands()) {
    std::vector<std::string> args{command.name};
    if (!command.argument.empty()) args.push_back("x");
    const std::string before = parsed(args).flagfile;
    std::size_t start = 0;
    for (auto end = before.find('\n'); end != std::string::npos; end = before.find('\n', start)) {
      args.push_back(before.substr(start, end - start));
      start = end + 1;
    }
    CHECK(parsed(args).flagfile == before);
  }
}

TEST_CASE("numbers are taken up to their limits and not beyond") {
  struct Limits {
    const char* name;
    std::vector<const char*> inside, outside;
  };
  const std::vector<Limits> limits{
      {"batch_size", {"1", "65536"}, {"0", "65537"}},
      {"num_gpus", {"1", "1024"}, {"0", "1025", "-1"}},
      {"compute_threads", {"0", "4096"}, {"-1", "4097"}},
      {"input_threads", {"0", "1024"}, {"-1", "1025"}},
      {"cpu_devices", {"1", "1024"}, {"0", "1025"}},
      {"max_steps", {"0", "9223372036854775807"}, {"-1"}},
      {"max_seconds", {"0", "0.5"}, {"-0.1", "inf"}},
      {"stall_seconds", {"0", "0.5"}, {"-1", "nan"}},
      {"display_every", {"1"}, {"0", "-1"}},
      {"summary_every", {"1"}, {"0"}},
      {"checkpoint_every", {"1"}, {"0"}},
      {"max_to_keep", {"0", "2147483647"}, {"-1", "2147483648"}},
      {"eval_every", {"0"}, {"-1"}},
      {"trace_steps", {"1", "1000000"}, {"0", "1000001"}},
      {"learning_rate", {"0", "10"}, {"-0.1", "nan"}},
      {"learning_rate_decay", {"0", "1"}, {"-0.1", "1.01"}},
      {"epochs_per_decay", {"1e-9"}, {"0", "-1"}},
      {"moving_average_decay", {"0", "1"}, {"1.0001"}},
      {"weight_decay", {"0", "1e9"}, {"-1e-9"}},
  };
  for (const auto& [name, inside, outside] : limits) {
    for (const char* value : inside) {
      CHECK(complaint({std::string("--") + name + "=" + value}) == "(accepted)");
    }
    for (const char* value : outside) {
      CHECK(complaint({std::string("--") + name + "=" + value}).find("expected") !=
            std::string::npos);
    }
  }
  CHECK(complaint({"eval", "--num_examples=0"}).find("1 or more") != std::string::npos);
  CHECK(complaint({"eval", "--eval_interval_secs=-1"}).find("0 or more") != std::string::npos);
  CHECK(complaint({"linear", "--issync=1"}) == "(accepted)");
  CHECK(complaint({"linear", "--issync=2"}).find("0 to 1") != std::string::npos);
  CHECK(complaint({"linear", "--max_steps=2147483648"}).find("expected") != std::string::npos);
  CHECK(complaint({"linear", "--worker_timeout=0"}).find("expected") != std::string::npos);
}

TEST_CASE("each choice is taken, and nothing else") {
  const std::vector<std::pair<const char*, std::vector<const char*>>> choices{
      {"dataset", {"cifar10", "synthetic"}},
      {"device", {"auto", "cpu", "gpu"}},
      {"precision", {"fp32", "bf16", "fp16", "fp64"}},
      {"decay_by", {"steps", "examples"}},
      {"convolution", {"auto", "winograd4", "winograd2", "direct"}},
      {"log_level", {"debug", "info", "warning", "error", "off"}},
  };
  for (const auto& [name, values] : choices) {
    const std::string start = std::string("--") + name + "=";
    for (const char* value : values) CHECK(complaint({start + value}) == "(accepted)");
    for (const std::string value : {"", "other", "Auto"}) {
      CHECK(complaint({start + value}).starts_with(start + value + ": expected "));
    }
  }
  CHECK(options<EvalOptions>({"eval", "--eval_data=train_eval"}).eval_data == "train_eval");
}

TEST_CASE("bench takes lists, each element within the limits of the number") {
  const auto b = options<BenchOptions>({"bench", "--batch_size=32,128", "--num_gpus", "1,2,4",
                                        "--precision=fp32,bf16", "--compute_threads=0,2",
                                        "--input_threads=3", "--convolution=direct,winograd4"});
  CHECK(b.batch_sizes == std::vector{32, 128});
  CHECK(b.tower_counts == std::vector{1, 2, 4});
  CHECK(b.precisions == std::vector<std::string>{"fp32", "bf16"});
  CHECK(b.thread_counts == std::vector{0, 2});
  CHECK(b.input_thread_counts == std::vector{3});
  CHECK(b.convolutions == std::vector<std::string>{"direct", "winograd4"});
  CHECK(parsed({"bench", "--batch_size=32,128"}).flagfile.find("--batch_size=32,128\n") !=
        std::string::npos);
}

TEST_CASE("a malformed list is refused, with what is expected") {
  for (const char* list :
       {"", ",", "32,", ",32", "32,,64", "32, 64", "32;64", "0", "32,65537", "32,x", "1e2"}) {
    INFO(list);
    CHECK(complaint({"bench", std::string("--batch_size=") + list}) ==
          std::string("--batch_size=") + list +
              ": expected whole numbers in plain digits, 1 to 65536, with commas between them");
  }
  CHECK(complaint({"bench", "--precision=fp32,fp8"}) ==
        "--precision=fp32,fp8: expected one or more of fp32, bf16, fp16 or fp64, with commas "
        "between them");
  CHECK(complaint({"bench", "--repeats=0"}).find("expected") != std::string::npos);
  CHECK(complaint({"bench", "--what=all"}).find("expected step, input, train or layers") !=
        std::string::npos);
  CHECK(complaint({"--batch_size=32,64"}).find("expected a whole number") != std::string::npos);
  CHECK(complaint({"bench", "--use_fp16"}).find("belongs to") != std::string::npos);
}
