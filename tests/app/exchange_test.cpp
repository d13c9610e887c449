// Export and import, run as people run them.

#include <catch2/catch.hpp>

#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

ProcessResult exported(const fs::path& run, const fs::path& output,
                       const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {"export", "--checkpoint=" + run.string(),
                                   "--output=" + output.string()};
  args.insert(args.end(), more.begin(), more.end());
  return run_towers(args);
}

}  // namespace

TEST_CASE("a run that is exported and imported goes on bit for bit") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", copy = folder.path() / "copy";
  const fs::path file = folder.path() / "run.safetensors";
  // Two towers at first: the place in the stream of examples does not follow from the step alone.
  REQUIRE(quick_run(run, 3, {"--num_gpus=2"}).exit_code == 0);
  REQUIRE(exported(run, file).exit_code == 0);
  const ProcessResult imported =
      run_towers({"import", file.string(), "--train_dir=" + copy.string()});
  INFO(imported.err);
  REQUIRE(imported.exit_code == 0);
  CHECK(checkpoint_bytes(copy, 2) == checkpoint_bytes(run, 2));
  // Without a seed of its own: the run's travels along.
  REQUIRE(run_towers({"--dataset=synthetic", "--device=cpu", "--batch_size=8", "--max_steps=5",
                      "--resume", "--train_dir=" + run.string()})
              .exit_code == 0);
  const std::string command = "--flagfile='" + (copy / "flags.txt").string() + "' --resume";
  CHECK(contains(imported.err, "go on with: towers train " + command));
  REQUIRE(run_towers({"--flagfile=" + (copy / "flags.txt").string(), "--resume", "--num_gpus=1",
                      "--max_steps=5"})
              .exit_code == 0);
  CHECK(checkpoint_bytes(copy, 4) == checkpoint_bytes(run, 4));
}

TEST_CASE("import makes a checkpoint of any name, and leaves a run alone") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", file = folder.path() / "run.safetensors";
  REQUIRE(quick_run(run, 2).exit_code == 0);
  REQUIRE(exported(run, file).exit_code == 0);
  const std::string output = (folder.path() / "variables").string();
  REQUIRE(run_towers({"import", file.string(), "--output=" + output}).exit_code == 0);
  CHECK(read_file(output + ".data-00000-of-00001") ==
        read_file(run / "model.ckpt-1.data-00000-of-00001"));
  const ProcessResult refused =
      run_towers({"import", file.string(), "--train_dir=" + run.string()});
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "holds a run's checkpoints"));
  CHECK(fs::exists(run / "events.out.tfevents.0") == false);
}

TEST_CASE("files that are no safetensors of this model end in one line that names them") {
  TemporaryFolder folder;
  const std::string file = (folder.path() / "a.safetensors").string();
  const std::string to = "--train_dir=" + (folder.path() / "new").string();
  const auto message = [&] {
    const ProcessResult result = run_towers({"import", file, to});
    CHECK(result.exit_code == 1);
    CHECK(lines_of(result.err).size() == 1);
    CHECK(contains(result.err, file));
    return result.err;
  };
  CHECK(contains(message(), "No such file"));
  write_file(file, "not a safetensors file");
  CHECK(contains(message(), "not a whole safetensors file"));
  write_file(file, std::string("\2\0\0\0\0\0\0\0{}", 10));
  CHECK(contains(message(), "conv1/weights is missing"));
  CHECK_FALSE(fs::exists(folder.path() / "new" / "checkpoint"));
}

TEST_CASE("export writes over a model of its kind alone") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  const std::string state = read_file(run / "checkpoint");
  for (const std::string format : {"onnx", "safetensors"}) {
    const std::string flag = "--format=" + format;
    const ProcessResult refused = exported(run, run / "checkpoint", {flag});
    CHECK(refused.exit_code == 1);
    CHECK(
        contains(refused.err, "exists and is not in " + format + " format, so it was not touched"));
    CHECK(read_file(run / "checkpoint") == state);
    const fs::path model = folder.path() / format;
    for (int i = 0; i < 2; ++i) CHECK(exported(run, model, {flag}).exit_code == 0);
    write_file(model, "");  // nothing is lost
    CHECK(exported(run, model, {flag}).exit_code == 0);
  }
  CHECK(exported(run, folder.path() / "onnx", {"--format=safetensors"}).exit_code == 1);
}

TEST_CASE("export asks for what it needs") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const auto refused = [&](const std::vector<std::string>& args, int exit_code) {
    const ProcessResult result = run_towers(args);
    CHECK(result.exit_code == exit_code);
    CHECK(lines_of(result.err).size() == 1);
    return result.err;
  };
  const std::string out = "--output=" + (folder.path() / "model").string();
  CHECK(contains(refused({"export"}, 2), "--output=FILE"));
  CHECK(contains(refused({"export", out}, 2), "--format="));
  CHECK(contains(refused({"export", out, "--format=safetensors", "--raw_weights"}, 2), "ONNX"));
  CHECK(contains(refused({"export", out, "--format=safetensors", "--preprocessing"}, 2), "ONNX"));
  fs::create_directory(run);
  CHECK(contains(refused({"export", out, "--format=onnx", "--checkpoint=" + run.string()}, 1),
                 "No checkpoint file found"));
  CHECK(fs::is_empty(run));
  CHECK_FALSE(fs::exists(folder.path() / "model"));
}

TEST_CASE("an ONNX model of averages and one of variables differ") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 3).exit_code == 0);
  const auto model = [&](const std::string& name, const std::vector<std::string>& more) {
    REQUIRE(exported(run, folder.path() / name, more).exit_code == 0);
    return read_file(folder.path() / name);
  };
  const std::string averages = model("averages.onnx", {});
  const std::string variables = model("variables.onnx", {"--raw_weights"});
  CHECK(contains(averages, "moving_averages"));
  CHECK(averages != variables);
  CHECK(contains(model("bytes.onnx", {"--preprocessing"}), "preprocessing/crop"));
}
