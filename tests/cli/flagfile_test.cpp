// Files of flags, read and written.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>

#include "cli/commands.h"
#include "cli/flags.h"
#include "tests/cli/parsing.h"
#include "tests/support.h"

using namespace towers::cli;
using namespace towers::test;

namespace {

class Files {
 public:
  // Returns the name of a new file in a temporary folder.
  std::string add(const std::string& name, const std::string& content) {
    write_file(folder_.path() / name, content);
    return path(name);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a flagfile has a flag a line, blank lines and comments") {
  Files files;
  const auto file = files.add("flags",
                              "# a comment, --batch_size=9\n"
                              "// another\n"
                              "\n"
                              "   \t \n"
                              "--batch_size=3\r\n"
                              "  -num_gpus 4  \n"
                              "--resume\n"
                              "--nodownload\n"
                              "--overwrite true\n"
                              "--train_dir=/a b#c=d\n"
                              "--max_steps=77");
  for (const auto& options : {train({"--flagfile=" + file}), train({"-flagfile", file})}) {
    CHECK(options.batch_size == 3);
    CHECK(options.num_gpus == 4);
    CHECK(options.resume);
    CHECK(options.overwrite);
    CHECK_FALSE(options.download);
    CHECK(options.train_dir == "/a b#c=d");
    CHECK(options.max_steps == 77);
  }
}

TEST_CASE("a flagfile stands where it is named: the last of equal flags counts") {
  Files files;
  const auto file = files.add("flags", "--batch_size=3\n--resume\n");
  CHECK(train({"--batch_size=9", "--flagfile=" + file}).batch_size == 3);
  CHECK(train({"--flagfile=" + file, "--batch_size=9"}).batch_size == 9);
  CHECK_FALSE(train({"--flagfile=" + file, "--noresume"}).resume);
  const auto other = files.add("other", "--batch_size=4\n");
  CHECK(train({"--flagfile=" + file, "--flagfile=" + other}).batch_size == 4);
  CHECK(parsed({"--num_gpus=2", "--flagfile=" + file, "--batch_size=9"}).given ==
        std::vector<std::string>{"num_gpus", "batch_size", "resume"});
}

TEST_CASE("a flagfile may name others") {
  Files files;
  const auto inner = files.add("inner", "--batch_size=3\n--num_gpus=3\n");
  const auto outer = files.add("outer", "--batch_size=2\n--flagfile=" + inner + "\n--num_gpus=2\n");
  CHECK(train({"--flagfile=" + outer}).batch_size == 3);
  CHECK(train({"--flagfile=" + outer}).num_gpus == 2);
  // The same file twice, one after the other, is no circle.
  CHECK(train({"--flagfile=" + inner, "--num_gpus=1", "--flagfile=" + inner}).num_gpus == 3);
}

TEST_CASE("flagfiles that name each other end with an error") {
  Files files;
  const auto a = files.add("a", "--quiet\n--flagfile=" + files.path("b") + "\n");
  const auto b = files.add("b", "--flagfile=" + a + "\n");
  CHECK(complaint({"--flagfile=" + a}) ==
        a + ":2: " + b + ":1: --flagfile=" + a + ": this file is being read already");
  // Each level names the next one twice: 2^20 files but for the limit.
  for (int level = 0; level < 20; ++level) {
    const auto next = "--flagfile=" + files.path("n" + std::to_string(level + 1)) + "\n";
    files.add("n" + std::to_string(level), next + next);
  }
  files.add("n20", "");
  CHECK(complaint({"--flagfile=" + files.path("n0")}).ends_with(": more than 64 files of flags"));
}

TEST_CASE("a mistake in a flagfile is told with file and line") {
  Files files;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--batch_size=0", "--batch_size=0: expected a whole number in plain digits, 1 to 65536"},
      {"--batchsize 5", "unknown flag --batchsize; did you mean --batch_size?"},
      {"--num_examples=5", "--num_examples belongs to `towers eval`, not to `towers train`"},
      {"--batch_size",
       "--batch_size needs a value: expected a whole number in plain digits, 1 to "
       "65536"},
      {"eval", "expected a flag, found 'eval'"},
      {"batch_size=5", "expected a flag, found 'batch_size=5'"},
      {"--", "expected a flag, found '--'"},
      {"--help", "--help belongs on the command line"},
      {"--resume maybe", "--resume=maybe: expected true or false"},
      {std::string("\x7f\x45LF\x02 \0", 7), "expected a flag, found '?ELF? ?'"},
  };
  for (const auto& [line, message] : cases) {
    const auto file = files.add("flags", "# first\n\n" + line + "\n--quiet\n");
    CHECK(complaint({"--flagfile=" + file}) == file + ":3: " + message);
  }
}

TEST_CASE("a flagfile may begin with the mark that editors of Windows write") {
  Files files;
  CHECK(train({"--flagfile=" + files.add("utf8", "\xef\xbb\xbf--batch_size=3\r\n")}).batch_size ==
        3);
  for (const char* mark : {"\xff\xfe-", "\xfe\xff"})
    CHECK(complaint({"--flagfile=" + files.add("utf16", mark)}) ==
          "--flagfile=" + files.path("utf16") + ": is UTF-16; save it as UTF-8");
}

TEST_CASE("a flagfile that cannot be read is named") {
  Files files;
  CHECK(complaint({"--flagfile=" + files.path("none")}) ==
        "--flagfile=" + files.path("none") + ": cannot be read: No such file or directory");
  CHECK(complaint({"--flagfile=" + files.path("")}) ==
        "--flagfile=" + files.path("") + ": is a folder");
  CHECK(complaint({"--flagfile="}) == "--flagfile=: cannot be read: No such file or directory");
  const auto large = files.add("large", std::string((1 << 16) + 1, '\n'));
  CHECK(complaint({"--flagfile=" + large}) ==
        "--flagfile=" + large + ": too long for a file of flags");
  CHECK(train({"--flagfile=" + files.add("empty", "")}).batch_size == 128);
}

TEST_CASE("what is written for a command is read back to the same, for every flag") {
  // A value of each that is not its default.
  const std::map<std::string, std::string> other{
      {"max_steps", "1234567890"},
      {"max_seconds", "0.1"},
      {"stall_seconds", "5"},
      {"train_dir", "/a b/#c=d"},
      {"overwrite", "true"},
      {"resume", "true"},
      {"init_from", "x/model.ckpt-1"},
      {"seed", "18446744073709551615"},
      {"data_dir", "d"},
      {"dataset", "synthetic"},
      {"download", "false"},
      {"data_url", "file:///a b.tar.gz"},
      {"data_sha256", std::string(64, 'a')},
      {"batch_size", "7"},
      {"input_threads", "0"},
      {"input", "host"},
      {"learning_rate", "0.30000000000000004"},
      {"learning_rate_decay", "1e-300"},
      {"epochs_per_decay", "1e+22"},
      {"decay_by", "examples"},
      {"moving_average_decay", "0.5"},
      {"weight_decay", "0"},
      {"num_gpus", "3"},
      {"device", "cpu"},
      {"allow_soft_placement", "false"},
      {"log_device_placement", "true"},
      {"precision", "fp64"},
      {"allow_tf32", "true"},
      {"compute_threads", "5"},
      {"cpu_devices", "2"},
      {"simd", "AVX2"},
      {"convolution", "direct"},
      {"deterministic", "true"},
      {"display_every", "2"},
      {"summary_every", "3"},
      {"checkpoint_every", "4"},
      {"max_to_keep", "0"},
      {"eval_every", "6"},
      {"trace_file", "t.json"},
      {"trace_steps", "7"},
      {"ps_placement", "bytes"},
      {"push_precision", "bf16"},
      {"pull_precision", "bf16"},
      {"pin_threads", "true"},
      {"progress", "true"},
      {"json", "true"},
      {"save_model_secs", "0.5"},
      {"reload", "true"},
      {"steps_to_validate", "10"},
      {"ps_hosts", "a:1,[::1]:2"},
      {"worker_hosts", "b:1"},
      {"job_name", "ps"},
      {"task_index", "1"},
      {"issync", "1"},
      {"replicas_to_aggregate", "2"},
      {"worker_timeout", "0.25"},
      {"cluster_timeout", "1"},
      {"ps_keep_serving", "true"},
      {"stop_on_lost_worker", "true"},
      {"cluster_token_file", "t"},
      {"tls_cert", "c"},
      {"tls_key", "k"},
      {"tls_ca", "a"},
      {"checkpoint_dir", "c"},
      {"eval_dir", "e"},
      {"eval_data", "train_eval"},
      {"num_examples", "11"},
      {"run_once", "true"},
      {"what", "layers"},
      {"warmup", "0"},
      {"repeats", "3"},
      {"csv", "a b.csv"},
      {"eval_interval_secs", "1.5"},
      {"raw_weights", "true"},
      {"checkpoint", "run1"},
      {"format", "onnx"},
      {"output", "a b.onnx"},
      {"preprocessing", "true"},
      {"metrics_log", "m.csv"},
      {"diff", "true"},
      {"logits", "true"},
      {"log_level", "debug"},
      {"quiet", "true"},
  };
  Files files;
  for (const CommandRow& command : commands()) {
    std::vector<std::string> words{command.name};
    if (!command.argument.empty()) words.push_back("x");
    const std::string defaults = parsed(words).flagfile;
    auto args = words;
    std::string expected;
    for (const Flag& flag : flags()) {
      if ((flag.accepted & command.bit) == 0) continue;
      const auto value = other.find(flag.name);
      if (value == other.end()) {
        // Those that have no value of their own.
        CHECK((flag.name == "flagfile" || flag.name == "help" || flag.name == "version" ||
               flag.name == "use_fp16"));
        continue;
      }
      const auto line = "--" + flag.name + "=" + value->second + "\n";
      CHECK(defaults.find(line) == std::string::npos);
      expected += line;
      args.push_back(line.substr(0, line.size() - 1));
    }
    const Parsed first = parsed(args);
    CHECK(first.flagfile == expected);
    auto again = words;
    again.push_back("--flagfile=" + files.add("written", first.flagfile));
    CHECK(parsed(again).flagfile == expected);
    CHECK(parsed(again).given == first.given);
  }
}

TEST_CASE("a line of a flagfile is replaced or added") {
  CHECK(with_flag("", "seed", "7") == "--seed=7\n");
  CHECK(with_flag("--a=1\n--b=2\n", "seed", "7") == "--a=1\n--b=2\n--seed=7\n");
  CHECK(with_flag("--a=1\n--seed=5\n--b=2\n", "seed", "7") == "--a=1\n--seed=7\n--b=2\n");
  CHECK(with_flag("--seed=5\n--a=1\n--seed=6\n", "seed", "7") == "--seed=7\n--a=1\n");
  CHECK(with_flag("--seeds=5", "seed", "7") == "--seeds=5\n--seed=7\n");
  Files files;
  const auto file = files.add("flags", with_flag(parsed({}).flagfile, "seed", "7"));
  CHECK(train({"--flagfile=" + file}).seed == 7U);
}

TEST_CASE("a flagfile may be a pipe, as a shell's <(...) makes one") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const std::string lines = "--batch_size=3\n";
  REQUIRE(::write(ends[1], lines.data(), lines.size()) == static_cast<ssize_t>(lines.size()));
  ::close(ends[1]);
  CHECK(train({"--flagfile=/dev/fd/" + std::to_string(ends[0])}).batch_size == 3);
  ::close(ends[0]);
}
