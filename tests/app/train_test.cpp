// What a run prints and leaves behind.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/checkpoint.h"
#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("a run prints a step line every 10 steps, the first at 0") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 25);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const std::vector<std::string> losses = losses_of(run.out);
  REQUIRE(losses.size() == 3);
  CHECK(contains(losses[0], "step 0, loss = 4.6"));  // weight decay, and log(10)
  CHECK(contains(losses[1], "step 10,"));
  CHECK(contains(losses[2], "step 20,"));
  CHECK(contains(run.err, "running: tower_0"));
}

TEST_CASE("a run leaves checkpoints, an event file and its flags") {
  TemporaryFolder folder;
  const ProcessResult run =
      quick_run(folder.path() / "run", 12, {"--checkpoint_every=3", "--max_to_keep=2"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  std::set<std::string> names = names_in(folder.path() / "run");
  const auto event = std::find_if(names.begin(), names.end(), [](const std::string& n) {
    return n.compare(0, 21, "events.out.tfevents.1") == 0;
  });
  REQUIRE(event != names.end());
  names.erase(event);
  CHECK(names == std::set<std::string>{"checkpoint", "flags.txt", "model.ckpt-11.index",
                                       "model.ckpt-11.data-00000-of-00001", "model.ckpt-9.index",
                                       "model.ckpt-9.data-00000-of-00001"});
  CHECK(contains(read_file(folder.path() / "run/checkpoint"),
                 "model_checkpoint_path: \"model.ckpt-11\""));
  const towers::data::CheckpointReader reader(folder.path() / "run/model.ckpt-11");
  CHECK(reader.read_integer("global_step") == 12);
  CHECK(reader.tensors().size() == 21);
}

TEST_CASE("the start-up table names the global batch, the decay step and the seed") {
  TemporaryFolder folder;
  const ProcessResult by_steps = quick_run(folder.path() / "a", 1, {"--num_gpus=4"});
  REQUIRE(by_steps.exit_code == 0);
  CHECK(contains(by_steps.out, "8 x 4 = 32"));
  CHECK(contains(by_steps.out, "2187500 steps"));
  CHECK(contains(by_steps.out, "seed"));
  CHECK(contains(by_steps.err, "4 towers on 1 device"));
  const ProcessResult by_examples =
      quick_run(folder.path() / "b", 1, {"--num_gpus=4", "--decay_by=examples"});
  CHECK(contains(by_examples.out, "546875 steps"));
}

TEST_CASE("the final summary says where the time went") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 5, {"--num_gpus=2"});
  for (const char* row : {"time in input", "time in compute", "time in averaging", "time in saving",
                          "limited by", "epochs"}) {
    INFO(row);
    CHECK(contains(run.out, row));
  }
  CHECK(contains(run.out, "80"));  // 5 steps of 2 towers of 8: every tower counts
}

TEST_CASE("flag --quiet leaves the step lines alone on stdout") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 11, {"--quiet"});
  CHECK(lines_of(run.out).size() == 2);
  CHECK(losses_of(run.out).size() == 2);
  CHECK(run.err.empty());
}

TEST_CASE("flag --log_device_placement names each layer of each tower once, on stderr") {
  TemporaryFolder folder;
  const ProcessResult run =
      quick_run(folder.path() / "run", 2, {"--num_gpus=2", "--log_device_placement"});
  for (const char* layer : {"tower_0/conv1", "tower_0/softmax_linear", "tower_1/local3"}) {
    const std::string line = std::string(layer) + ":";
    const std::size_t first = run.err.find(line);
    INFO(run.err);
    REQUIRE(first != std::string::npos);
    CHECK(run.err.find(line, first + 1) == std::string::npos);
    CHECK_FALSE(contains(run.out, line));
  }
  CHECK(contains(run.err, "/job:localhost/replica:0/task:0/device:CPU:0"));
  const ProcessResult without = quick_run(folder.path() / "other", 2);
  CHECK_FALSE(contains(without.err, "tower_0/conv1"));
}

TEST_CASE("towers beyond the devices are an error without soft placement") {
  TemporaryFolder folder;
  const ProcessResult run =
      quick_run(folder.path() / "run", 2, {"--num_gpus=2", "--noallow_soft_placement"});
  CHECK(run.exit_code == 1);
  CHECK(contains(run.err, "Cannot assign a device for operation"));
  CHECK_FALSE(fs::exists(folder.path() / "run"));
  CHECK(quick_run(folder.path() / "run", 2,
                  {"--num_gpus=2", "--noallow_soft_placement", "--cpu_devices=2"})
            .exit_code == 0);
}

TEST_CASE("flag --max_steps=0 makes nothing") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 0);
  CHECK(run.exit_code == 0);
  CHECK(losses_of(run.out).empty());
  CHECK_FALSE(fs::exists(folder.path() / "run/checkpoint"));
}

TEST_CASE("flag --max_steps=1 makes one step and one checkpoint") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 1).exit_code == 0);
  CHECK(fs::exists(folder.path() / "run/model.ckpt-0.index"));
}

TEST_CASE("flag --init_from starts at step 0 with a checkpoint's variables") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "first", 5).exit_code == 0);
  const ProcessResult run = quick_run(
      folder.path() / "second", 1,
      {"--init_from=" + (folder.path() / "first/model.ckpt-4").string(), "--learning_rate=0"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const towers::data::CheckpointReader before(folder.path() / "first/model.ckpt-4");
  const towers::data::CheckpointReader after(folder.path() / "second/model.ckpt-0");
  std::vector<float> a(4800), b(4800);
  before.read("conv1/weights", a);
  after.read("conv1/weights", b);
  CHECK(a == b);
  CHECK(after.read_integer("global_step") == 1);
}

TEST_CASE("the largest values of flags are no trouble") {
  TemporaryFolder folder;
  const ProcessResult run =
      quick_run(folder.path() / "run", 1, {"--max_to_keep=2147483647", "--epochs_per_decay=1e17"});
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "every 9223372036854775807 steps"));
}

TEST_CASE("flag --eval_every prints precision lines") {
  TemporaryFolder folder;
  const ProcessResult run =
      quick_run(folder.path() / "run", 3, {"--eval_every=2", "--batch_size=64"});
  CHECK(contains(run.out, ": precision @ 1 = 0."));
  // The last step is evaluated, even where it is the first.
  const ProcessResult one =
      quick_run(folder.path() / "one", 1, {"--eval_every=1", "--batch_size=64"});
  CHECK(contains(one.out, ": precision @ 1 = 0."));
}
