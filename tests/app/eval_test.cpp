// The evaluator, and the commands that look at things.

#include <catch2/catch.hpp>

#include <signal.h>

#include <regex>

#include "data/dataset.h"
#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> eval_args(const fs::path& folder, const std::vector<std::string>& more) {
  std::vector<std::string> args = {"eval",
                                   "--dataset=synthetic",
                                   "--device=cpu",
                                   "--num_examples=500",
                                   "--checkpoint_dir=" + (folder / "run").string(),
                                   "--eval_dir=" + (folder / "eval").string()};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::vector<std::string> precision_lines(const std::string& out) {
  static const std::regex kLine(
      R"(^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: precision @ 1 = (\d\.\d{3})$)");
  std::vector<std::string> found;
  for (const std::string& line : lines_of(out))
    if (std::smatch match; std::regex_match(line, match, kLine)) found.push_back(match[1]);
  return found;
}

}  // namespace

TEST_CASE("a checkpoint that is named is evaluated, not the folder's latest") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 3, {"--checkpoint_every=1"}).exit_code == 0);
  const std::string named = (folder.path() / "run/model.ckpt-1").string();
  const ProcessResult run =
      run_towers(eval_args(folder.path(), {"--run_once", "--checkpoint_dir=" + named}));
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.err, "evaluated " + named + " (global_step 2)"));
  CHECK(precisions_of(run.out).size() == 1);
  // As a shell completes its name.
  CHECK(run_towers(eval_args(folder.path(), {"--run_once", "--checkpoint_dir=" + named + ".index"}))
            .exit_code == 0);
  const ProcessResult none =
      run_towers(eval_args(folder.path(), {"--run_once", "--checkpoint_dir=" + named + "9"}));
  CHECK(none.exit_code == 1);
  CHECK(contains(none.err, "No checkpoint file found in " + named + "9"));
}

TEST_CASE("run_once in each spelling evaluates once and ends") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 3).exit_code == 0);
  for (const std::string spelling :
       {"--run_once", "--run_once=true", "--run_once=True", "--run_once=1", "-run_once"}) {
    INFO(spelling);
    const ProcessResult run = run_towers(eval_args(folder.path(), {spelling}));
    CHECK(run.exit_code == 0);
    CHECK(precision_lines(run.out).size() == 1);
  }
}

TEST_CASE("each image is counted once for any batch size") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 30).exit_code == 0);
  const auto right = [&](const std::string& batch) {
    const ProcessResult run =
        run_towers(eval_args(folder.path(), {"--run_once", "--batch_size=" + batch}));
    std::smatch match;
    REQUIRE(std::regex_search(run.err, match, std::regex(R"((\d+) of 500 right)")));
    return match[1].str();
  };
  const std::string expected = right("100");
  CHECK(right("7") == expected);
  CHECK(right("999") == expected);
}

TEST_CASE("run_once without a checkpoint is an error") {
  TemporaryFolder folder;
  const ProcessResult run = run_towers(eval_args(folder.path(), {"--run_once"}));
  CHECK(run.exit_code == 1);
  CHECK(contains(run.err, "No checkpoint file found"));
  CHECK(run.out.empty());
}

TEST_CASE("the loop evaluates each checkpoint once, and SIGINT ends it quietly") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 2).exit_code == 0);
  Process loop(eval_args(folder.path(), {"--eval_interval_secs=0.05", "--run_once=false"}));
  REQUIRE(loop.wait_for_output("precision @ 1"));
  REQUIRE(quick_run(folder.path() / "run", 4, {"--resume", "--checkpoint_every=1"}).exit_code == 0);
  REQUIRE(loop.wait_for_output("global_step 4"));
  REQUIRE(quick_run(folder.path() / "again", 1).exit_code == 0);  // some more looks
  loop.signal(SIGINT);
  const ProcessResult result = loop.wait();
  CHECK(result.exit_code == 130);
  CHECK_FALSE(contains(result.err, "rror"));
  std::size_t of_step_4 = 0;
  for (const std::string& line : lines_of(result.err))
    if (contains(line, "global_step 4")) ++of_step_4;
  CHECK(of_step_4 == 1);
}

TEST_CASE("the synthetic set is learned, and averages and raw weights differ") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 250, {"--batch_size=64"}).exit_code == 0);
  const auto precision = [&](const std::string& flag) {
    const ProcessResult run = run_towers(eval_args(folder.path(), {"--run_once", flag}));
    const std::vector<std::string> found = precision_lines(run.out);
    REQUIRE(found.size() == 1);
    return std::stod(found.front());
  };
  const double averaged = precision("--noraw_weights"), raw = precision("--raw_weights");
  CHECK(averaged > 0.2);  // 0.1 is chance
  CHECK(averaged != raw);
}

TEST_CASE("more examples than there are is a usage error") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 1).exit_code == 0);
  const ProcessResult run =
      run_towers(eval_args(folder.path(), {"--run_once", "--num_examples=10001"}));
  CHECK(run.exit_code == 2);
  CHECK(contains(run.err, "10000"));
}

TEST_CASE("TensorFlow's checkpoint gives TensorFlow's precision") {
  const char* data = std::getenv("TOWERS_DATA");
  if (shared_dir().empty() || data == nullptr)
    return skip("needs ../shared and TOWERS_DATA, a folder with the rebuilt cifar-10-batches-bin");
  TemporaryFolder folder;
  struct Case {
    const char* flag;
    int right;
  };
  for (const Case& c : {Case{"--noraw_weights", 6558}, Case{"--raw_weights", 6286}}) {
    const ProcessResult run =
        run_towers({"eval", "--run_once", "--device=cpu", c.flag, std::string("--data_dir=") + data,
                    "--checkpoint_dir=" + (shared_dir() / "golden").string(),
                    "--eval_dir=" + (folder.path() / "eval").string()});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    std::smatch match;
    REQUIRE(std::regex_search(run.err, match, std::regex(R"((\d+) of 10000 right)")));
    CHECK(std::abs(std::stoi(match[1]) - c.right) <= 2);
  }
}

TEST_CASE("devices lists the CPU devices, as text and as JSON") {
  const ProcessResult text = run_towers({"devices", "--device=cpu", "--cpu_devices=2"});
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "/cpu:0, /cpu:1"));
  const ProcessResult json = run_towers({"devices", "--device=cpu", "--json"});
  CHECK(json.out.front() == '{');
  CHECK(contains(json.out, "\"/cpu:0\""));
}

TEST_CASE("inspect names the tensors of a prefix, a file and a folder") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 1).exit_code == 0);
  const fs::path run = folder.path() / "run";
  for (const fs::path& path : {run / "model.ckpt-0", run / "model.ckpt-0.index", run}) {
    const ProcessResult result = run_towers({"inspect", path.string()});
    CHECK(result.exit_code == 0);
    CHECK(contains(result.out, "conv1/weights/ExponentialMovingAverage"));
    CHECK(contains(result.out, "[5, 5, 3, 64]"));
  }
  std::string data = read_file(run / "model.ckpt-0.data-00000-of-00001");
  data[100000] ^= 1;
  write_file(run / "model.ckpt-0.data-00000-of-00001", data);
  const ProcessResult damaged = run_towers({"inspect", run.string()});
  CHECK(damaged.exit_code == 1);
  CHECK(contains(damaged.err, "model.ckpt-0"));
}

TEST_CASE("inspect prints no name in JSON that would lead nowhere") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "caf\xe9";  // Latin-1
  REQUIRE(quick_run(run, 1).exit_code == 0);
  CHECK(run_towers({"inspect", run.string()}).exit_code == 0);
  const ProcessResult json = run_towers({"inspect", "--json", run.string()});
  CHECK(json.exit_code == 1);
  CHECK(contains(json.err, "is not UTF-8"));
  fs::create_directory_symlink(run, folder.path() / "coffee");
  CHECK(run_towers({"inspect", "--json", (folder.path() / "coffee").string()}).exit_code == 0);
}

TEST_CASE("a file's name with a line break does not break the message") {
  const ProcessResult run = run_towers({"inspect", "no\nsuch\x1b[31m file"});
  CHECK(run.exit_code == 1);
  CHECK(lines_of(run.err).size() == 1);
  CHECK(contains(run.err, "no?such?[31m file"));
}
