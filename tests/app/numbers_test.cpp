// Flags and data at the edges of what is possible: each has one outcome, which docs/reliability.md
// lists.

#include <catch2/catch.hpp>

#include "data/checkpoint.h"
#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

// Every float32 value of a checkpoint but the step's.
std::vector<float> values_of(const fs::path& run, int step) {
  const towers::data::CheckpointReader reader(run / ("model.ckpt-" + std::to_string(step)));
  std::vector<float> all;
  for (const towers::data::TensorInfo& tensor : reader.tensors()) {
    if (tensor.name == "global_step") continue;
    std::vector<float> values(tensor.bytes / sizeof(float));
    reader.read(tensor.name, values);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::string position_line(const fs::path& run, const std::string& checkpoint) {
  for (const std::string& line : lines_of(read_file(run / "flags.txt")))
    if (contains(line, checkpoint + ":")) return line;
  return "";
}

}  // namespace

TEST_CASE("a batch of one, and one that divides no epoch, count their examples") {
  TemporaryFolder folder;
  for (const int batch : {1, 7}) {
    INFO(batch);
    const fs::path run = folder.path() / std::to_string(batch);
    // No batch of 7 ends where the epoch of 50,000 does; step 7142 goes on in the next one.
    REQUIRE(quick_run(run, 3, {"--batch_size=" + std::to_string(batch)}).exit_code == 0);
    CHECK(position_line(run, "model.ckpt-2") ==
          "# examples drawn at model.ckpt-2: " + std::to_string(3 * batch));
  }
}

TEST_CASE("seven towers and prime numbers of threads and devices give the bytes of one thread") {
  TemporaryFolder folder;
  const std::vector<std::string> seven = {"--num_gpus=7", "--batch_size=3"};
  const auto bytes = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> flags = seven;
    flags.insert(flags.end(), more.begin(), more.end());
    const ProcessResult run = quick_run(folder.path() / name, 3, flags);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return checkpoint_bytes(folder.path() / name, 2);
  };
  const std::string one = bytes("one", {"--compute_threads=1", "--input_threads=1"});
  CHECK(bytes("primes", {"--compute_threads=7", "--input_threads=5", "--cpu_devices=3"}) == one);
  CHECK(bytes("more", {"--compute_threads=13", "--input_threads=11", "--cpu_devices=5"}) == one);
  CHECK(position_line(folder.path() / "one", "model.ckpt-2") ==
        "# examples drawn at model.ckpt-2: 63");
}

TEST_CASE("a learning rate of 0 leaves variables and averages as they began") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 4, {"--learning_rate=0", "--checkpoint_every=1"}).exit_code == 0);
  const std::vector<float> first = values_of(run, 0);
  CHECK(first.size() > 2'000'000);
  CHECK(values_of(run, 3) == first);
}

TEST_CASE("a learning rate beyond all measure ends the run at the step that it breaks") {
  TemporaryFolder folder;
  for (const std::string rate : {"3e38", "1e300"}) {  // the other is no float32
    INFO(rate);
    const fs::path run = folder.path() / rate;
    const ProcessResult result = quick_run(run, 5, {"--learning_rate=" + rate});
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, "Model diverged with loss = NaN: step "));
    CHECK(contains(result.err, "--learning_rate"));
    CHECK_FALSE(fs::exists(run / "model.ckpt-4.index"));
  }
  CHECK(quick_run(folder.path() / "negative", 1, {"--learning_rate=-1"}).exit_code == 2);
}

TEST_CASE("images without contrast, all of one class, are learned and evaluated") {
  TemporaryFolder folder;
  const fs::path inner = folder.path() / "cifar-10-batches-bin", run = folder.path() / "run";
  fs::create_directories(inner);
  // One gray value: the standard deviation is 0, and the floor 1/sqrt(3072) divides instead.
  std::string batch(std::size_t{10000} * 3073, '\x40');
  for (std::size_t i = 0; i < 10000; ++i) batch[i * 3073] = 3;
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                           "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"})
    write_file(inner / name, batch);
  const std::string data = "--data_dir=" + folder.path().string();
  const ProcessResult trained =
      quick_run(run, 8, {"--dataset=cifar10", data, "--nodownload", "--moving_average_decay=0"});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const ProcessResult evaluated = run_towers(
      {"eval", data, "--nodownload", "--device=cpu", "--run_once", "--num_examples=40",
       "--checkpoint_dir=" + run.string(), "--eval_dir=" + (folder.path() / "eval").string()});
  INFO(evaluated.err);
  CHECK(evaluated.exit_code == 0);
  // Each image is the same one, so all are right or none is.
  CHECK((contains(evaluated.out, "precision @ 1 = 1.000") ||
         contains(evaluated.out, "precision @ 1 = 0.000")));
}

TEST_CASE("numbers beyond their range are refused before anything is made") {
  TemporaryFolder folder;
  for (const std::string flag : {"--batch_size=0", "--batch_size=65537", "--num_gpus=0",
                                 "--num_gpus=1025", "--compute_threads=4097",
                                 "--input_threads=1025", "--max_steps=-1", "--learning_rate=nan"}) {
    INFO(flag);
    const ProcessResult run = quick_run(folder.path() / "run", 1, {flag});
    CHECK(run.exit_code == 2);
    CHECK(lines_of(run.err).size() == 1);
    CHECK_FALSE(fs::exists(folder.path() / "run"));
  }
}

TEST_CASE("a batch that memory does not hold is one line that says what to lower") {
#ifdef TOWERS_SANITIZED
  return skip("a sanitizer needs address space beyond any limit");
#endif
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 1, {"--batch_size=65536"},
                                      {.address_space_limit = 3'000'000'000});
  CHECK(run.exit_code == 1);
  CHECK(contains(run.err, "memory"));
  CHECK(contains(run.err, "--batch_size"));
  CHECK_FALSE(fs::exists(folder.path() / "run/checkpoint"));

  // A smaller batch there is not.
  const ProcessResult towers =
      quick_run(folder.path() / "towers", 1, {"--batch_size=1", "--num_gpus=1024"},
                {.address_space_limit = 3'000'000'000});
  CHECK(towers.exit_code == 1);
  CHECK(lines_of(towers.err).size() == 1);
  CHECK(contains(towers.err, "lower --num_gpus"));
  CHECK_FALSE(contains(towers.err, "--batch_size"));
}
