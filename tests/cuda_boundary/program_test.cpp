// The binary on machines with and without GPUs, made of fakes where this one lacks them.

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "tests/app/quick_run.h"
#include "tests/cluster/mpirun.h"
#include "tests/cuda_boundary/modules.h"

using namespace towers::test;

namespace {

// A machine whose module has `gpus` made-up GPUs.
ProcessOptions fake_machine(const std::string& gpus, const std::string& mask = "0,1,2,3") {
  ProcessOptions options;
  options.environment = {"LD_LIBRARY_PATH=" + driver_folder(),
                         "TOWERS_CUDA_MODULE=" + module_file("fake_gpus").string(),
                         "TOWERS_FAKE_GPUS=" + gpus, "CUDA_VISIBLE_DEVICES=" + mask};
  return options;
}

// One whose GPUs, if there are any, are hidden.
ProcessOptions no_gpus() {
  ProcessOptions options;
  options.environment = {"CUDA_VISIBLE_DEVICES="};
  return options;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("devices lists GPUs as TensorFlow's helper does, then what tells them apart") {
  const ProcessResult run = run_towers({"devices"}, fake_machine("2", "3,1"));
  INFO(run.out << run.err);
  REQUIRE(run.exit_code == 0);
  const std::vector<std::string> lines = lines_of(run.out);
  CHECK(lines[0] == "all: /cpu:0, /gpu:0, /gpu:1");
  CHECK(lines[1] == "gpus: /gpu:0, /gpu:1");
  for (const char* part :
       {"Fake GPU", "9.0", "79.0 GB", "80.0 GB", "00000000:41:00.0", "GPU-fake-1"})
    CHECK(contains(run.out, part));
  CHECK(lines.back() == "CUDA_VISIBLE_DEVICES: 3,1");
}

TEST_CASE("devices --json has the same") {
  const ProcessResult run = run_towers({"devices", "--json"}, fake_machine("2", "3,1"));
  REQUIRE(run.exit_code == 0);
  const auto json = nlohmann::json::parse(run.out);
  REQUIRE(json["devices"].size() == 3);
  const auto& gpu = json["devices"][2];
  CHECK(gpu["name"] == "/gpu:1");
  CHECK(gpu["device"] == "/job:localhost/replica:0/task:0/device:GPU:1");
  CHECK(gpu["index"] == 1);
  CHECK(gpu["compute_capability"] == "9.0");
  CHECK(gpu["memory_free"] == 79000000000);
  CHECK(gpu["memory_total"] == 80000000000);
  CHECK(gpu["pci_bus_id"] == "00000000:41:00.0");
  CHECK(gpu["uuid"] == "GPU-fake-1");
  CHECK(json["cuda_visible_devices"] == "3,1");
  CHECK(json["why_no_gpus"].is_null());
}

TEST_CASE("devices without a usable GPU lists the CPU and says why in one line") {
  const ProcessResult text = run_towers({"devices"}, no_gpus());
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "all: /cpu:0\ngpus: none\n"));
  CHECK(count(text.out, "no GPU: ") == 1);
  CHECK(contains(text.out, "CUDA_VISIBLE_DEVICES: empty (hides every GPU)"));
  const auto json = nlohmann::json::parse(run_towers({"devices", "--json"}, no_gpus()).out);
  CHECK(json["devices"].size() == 1);
  CHECK(contains(json["why_no_gpus"], "CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("devices of a machine whose driver finds nothing repeats the module's reason") {
  const ProcessResult run = run_towers({"devices"}, fake_machine("error"));
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "no GPU: the fake driver is too old"));
  CHECK(run_towers({"devices", "--device=gpu"}, fake_machine("error")).exit_code == 1);
}

TEST_CASE("without cuDNN the program starts, helps and trains on the CPU") {
  ProcessOptions machine = fake_machine("2");
  machine.environment.push_back("TOWERS_CUDA_MODULE=" + module_file("needs_cudnn").string());
  CHECK(run_towers({"--help"}, machine).exit_code == 0);
  const ProcessResult version = run_towers({"--version"}, machine);
  CHECK(version.exit_code == 0);
  CHECK(contains(version.out, "GPU module loads: no, libcudnn_of_tests.so.9 cannot be loaded"));
  CHECK(contains(run_towers({"devices"}, machine).out,
                 "no GPU: libcudnn_of_tests.so.9 cannot be loaded"));
  TemporaryFolder folder;
  CHECK(quick_run(folder.path() / "run", 1, {"--device=cpu"}, machine).exit_code == 0);
  const ProcessResult gpu = quick_run(folder.path() / "gpu", 1, {"--device=gpu"}, machine);
  CHECK(gpu.exit_code == 1);
  CHECK(contains(gpu.err, "--device=gpu: libcudnn_of_tests.so.9 cannot be loaded: cuDNN 9"));
  CHECK(count(gpu.err, "\n") == 1);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "gpu"));
}

TEST_CASE("version says that a module loads") {
  CHECK(contains(run_towers({"--version"}, fake_machine("2")).out, "GPU module loads: yes"));
}

TEST_CASE("hidden GPUs send --device=auto to the CPU and stop --device=gpu") {
  TemporaryFolder folder;
  const ProcessResult automatic = quick_run(folder.path() / "a", 1, {"--device=auto"}, no_gpus());
  INFO(automatic.err);
  CHECK(automatic.exit_code == 0);
  CHECK(contains(automatic.out, "/cpu:0"));
  const ProcessResult gpu = quick_run(folder.path() / "b", 1, {"--device=gpu"}, no_gpus());
  CHECK(gpu.exit_code == 1);
  CHECK(contains(gpu.err, "--device=gpu: CUDA_VISIBLE_DEVICES: empty (hides every GPU)"));
}

TEST_CASE("four towers on two GPUs are told once, and each layer's GPU on request") {
  TemporaryFolder folder;
  const ProcessResult run =
      quick_run(folder.path() / "run", 2,
                {"--device=gpu", "--num_gpus=4", "--log_device_placement"}, fake_machine("2"));
  INFO(run.out << run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(count(run.err, "4 towers on 2 devices") == 1);
  CHECK(contains(run.out, "/gpu:0 /gpu:1"));
  CHECK(contains(run.err, "tower_2/conv1: (Conv2D): /job:localhost/replica:0/task:0/device:GPU:0"));
  CHECK(contains(run.err, "tower_3/conv1: (Conv2D): /job:localhost/replica:0/task:0/device:GPU:1"));
  const ProcessResult one =
      quick_run(folder.path() / "one", 1, {"--device=gpu", "--num_gpus=4"}, fake_machine("1"));
  CHECK(count(one.err, "4 towers on 1 device\n") == 1);
}

TEST_CASE("a net that does not fit beside training is found before a former run is deleted") {
  TemporaryFolder folder;
  const auto dir = folder.path() / "run";
  REQUIRE(quick_run(dir, 1, {"--device=cpu"}, fake_machine("2")).exit_code == 0);
  const std::string flags = read_file(dir / "flags.txt");
  const ProcessResult run =
      quick_run(dir, 2, {"--device=gpu", "--eval_every=2"}, fake_machine("2"));
  CHECK(run.exit_code == 1);
  CHECK(contains(run.err, "the fake GPU is out of memory"));
  CHECK(lines_of(run.err).size() == 1);
  CHECK(run.out.empty());
  CHECK(read_file(dir / "flags.txt") == flags);
  CHECK(std::filesystem::exists(dir / "model.ckpt-0.index"));
}

TEST_CASE("the start table names the GPUs in use alone") {
  TemporaryFolder folder;
  const ProcessResult run =
      quick_run(folder.path() / "run", 1, {"--device=gpu", "--num_gpus=2", "--allow_tf32"},
                fake_machine("4"));
  CHECK(contains(run.out, "4 fake GPUs, TF32: /gpu:0 /gpu:1\n"));
}

TEST_CASE("more towers than GPUs without soft placement is TensorFlow's error") {
  TemporaryFolder folder;
  const ProcessResult run =
      quick_run(folder.path() / "run", 1,
                {"--device=gpu", "--num_gpus=3", "--noallow_soft_placement"}, fake_machine("2"));
  CHECK(run.exit_code == 1);
  CHECK(
      contains(run.err,
               "Cannot assign a device for operation 'tower_2': Operation was explicitly assigned "
               "to /device:GPU:2 but available devices are [ "
               "/job:localhost/replica:0/task:0/device:GPU:0, "
               "/job:localhost/replica:0/task:0/device:GPU:1 ]. Make sure the device "
               "specification refers to a valid device."));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "run"));
}

namespace {

// `ranks` processes of `towers train` on a machine with so many fake GPUs, which all of them see.
ProcessResult ranks_on_gpus(int ranks, const std::string& gpus, const TemporaryFolder& folder,
                            const std::vector<std::string>& more,
                            const std::string& variable = "UNUSED=1") {
  ProcessOptions options = under_mpirun();
  options.environment.push_back(variable);
  const ProcessOptions machine = fake_machine(gpus);
  options.environment.insert(options.environment.end(), machine.environment.begin(),
                             machine.environment.end());
  return run_towers(
      mpirun_args(ranks, quick_args(folder.path() / "run", 5, with({"--device=gpu"}, more))),
      options);
}

}  // namespace

TEST_CASE("processes that see the same GPUs share them out") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const ProcessResult run = ranks_on_gpus(2, "4", folder, {"--num_gpus=2"});
  INFO(run.out << run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(contains(run.err, "fake: rank 0 on GPUs 0 1\n"));
  CHECK(contains(run.err, "fake: rank 1 on GPUs 2 3\n"));
  CHECK(contains(run.out, "2 x 2 = 4 (processes x towers of each)"));
  CHECK(contains(run.err, "running: tower_3"));
}

TEST_CASE("more processes than GPUs are told which two would share one, before anything is made") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const ProcessResult run = ranks_on_gpus(2, "1", folder, {});
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK(count(run.err, "towers: error: ") == 1);
  CHECK(contains(run.err, "would share GPU-fake-0 (00000000:40:00.0), which NCCL refuses"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "run"));
}

TEST_CASE("a rank that fails within a step, when others may wait for its GPU, aborts all") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const ProcessResult run = ranks_on_gpus(2, "2", folder, {}, "TOWERS_FAKE_LOST=1");
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK(count(run.err, "towers: error: rank 1 on ") == 1);
  CHECK(contains(run.err, ": the fake GPU is lost\n"));
  // Aborted: a rank that merely returned would be told of otherwise. Open MPI may garble what it
  // says of an abort.
  CHECK_FALSE(contains(run.err, "non-zero"));
}
