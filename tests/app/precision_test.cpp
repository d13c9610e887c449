// --precision, as a person sees it.

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/app/quick_run.h"

using namespace towers::test;
using Json = nlohmann::json;

namespace {

// oneDNN says what it runs.
const ProcessOptions kTalking{.environment = {"ONEDNN_VERBOSE=1"}};

bool is_emulated(const ProcessResult& run) {
  return contains(run.err, "--precision=bf16 is slower than fp32 here: emulated in fp32: ");
}

// The cross-entropy of every tenth step.
std::vector<double> curve(const std::filesystem::path& folder, const std::string& precision) {
  const ProcessResult run =
      quick_run(folder / precision, 301,
                {"--precision=" + precision, "--batch_size=32",
                 "--metrics_log=" + (folder / precision).string() + ".jsonl"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  std::vector<double> losses;
  for (const std::string& line : lines_of(read_file((folder / precision).string() + ".jsonl")))
    losses.push_back(Json::parse(line)["cross_entropy"].get<double>());
  REQUIRE(losses.size() == 31);
  return losses;
}

}  // namespace

TEST_CASE("bf16 multiplies by oneDNN, or says that it is emulated and why") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 1, {"--precision=bf16"}, kTalking);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(contains(run.out, "precision      bf16"));
  if (is_emulated(run)) {
    CHECK_FALSE(contains(run.out, "dnnl_verbose"));
    return skip("bf16 is emulated here");
  }
  // Both convolutions with their gradients, and the dense layers.
  for (const char* call :
       {"exec,cpu,convolution", "backward_data", "backward_weights", "exec,cpu,matmul"})
    CHECK(contains(run.out, call));
  CHECK((contains(run.out, "src_bf16") || contains(run.out, "src:bf16")));  // oneDNN 2 or 3
}

TEST_CASE("bf16 is emulated where an algorithm is named, and where the processor lacks it") {
  TemporaryFolder folder;
  const ProcessResult named = quick_run(folder.path() / "named", 1,
                                        {"--precision=bf16", "--convolution=winograd4"}, kTalking);
  REQUIRE(named.exit_code == 0);
  CHECK(contains(named.err,
                 "--precision=bf16 is slower than fp32 here: emulated in fp32: --convolution="));
  CHECK_FALSE(contains(named.out, "exec,cpu"));

  ProcessOptions old_processor = kTalking;
  old_processor.environment.push_back("ONEDNN_MAX_CPU_ISA=AVX2");
  const ProcessResult old =
      quick_run(folder.path() / "old", 1, {"--precision=bf16", "--eval_every=1"}, old_processor);
  REQUIRE(old.exit_code == 0);
  CHECK(is_emulated(old));
  // Once, though training and evaluation are compiled.
  CHECK(old.err.find("is slower than fp32 here") == old.err.rfind("is slower than fp32 here"));
  CHECK_FALSE(contains(old.out, "exec,cpu"));
}

TEST_CASE("the loss of bf16 stays near that of fp32 over 300 steps") {
  TemporaryFolder folder;
  const std::vector<double> fp32 = curve(folder.path(), "fp32");
  const std::vector<double> bf16 = curve(folder.path(), "bf16");
  double difference = 0, sum = 0;
  for (std::size_t i = 0; i < fp32.size(); ++i) {
    difference += std::abs(bf16[i] - fp32[i]);
    sum += fp32[i];
  }
  CAPTURE(difference / sum, fp32.back(), bf16.back());
  CHECK(bf16 != fp32);
  // Both learn.
  CHECK(fp32.back() < fp32.front() * 0.9);
  CHECK(bf16.back() < bf16.front() * 0.9);
  CHECK(difference / sum < 0.1);
}

TEST_CASE("fp64 trains, evaluates and predicts, and says that it is slower") {
  TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  const ProcessResult train = quick_run(run, 3, {"--precision=fp64"});
  INFO(train.err);
  REQUIRE(train.exit_code == 0);
  CHECK(
      contains(train.err, "--precision=fp64 is slower than fp32 here: plain loops, for checking"));
  CHECK(losses_of(train.out) == losses_of(quick_run(folder.path() / "fp32", 3).out));
  const ProcessResult eval =
      run_towers({"eval", "--dataset=synthetic", "--device=cpu", "--checkpoint_dir=" + run,
                  "--eval_dir=" + run + "-eval", "--run_once", "--num_examples=16",
                  "--batch_size=16", "--precision=fp64"});
  INFO(eval.err);
  CHECK(eval.exit_code == 0);
  CHECK(contains(eval.err, "--precision=fp64 is slower than fp32 here"));
  CHECK(quick_run(folder.path() / "wrong", 1, {"--precision=fp64", "--convolution=winograd4"})
            .exit_code == 2);
}

TEST_CASE("bench has a row for each precision") {
  const ProcessResult run =
      run_towers({"bench", "--device=cpu", "--json", "--warmup=0", "--repeats=1", "--batch_size=2",
                  "--precision=fp32,bf16,fp64"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  std::vector<std::string> precisions;
  for (const std::string& line : lines_of(run.out))
    precisions.push_back(Json::parse(line)["precision"].get<std::string>());
  CHECK(precisions == std::vector<std::string>{"fp32", "bf16", "fp64"});
  CHECK(contains(run.err, "--precision=fp64 is slower than fp32 here"));
}
