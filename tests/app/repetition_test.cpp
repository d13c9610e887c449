// The same seed gives the same numbers, however the work is divided, stopped and resumed.

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/app/quick_run.h"

using namespace towers::test;

namespace {

// Keeps more threads busy than the machine has, so that those of a run come in another order.
class Load {
 public:
  Load() {
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
      threads_.emplace_back([this] {
        while (!ending_) {
        }
      });
  }
  ~Load() {
    ending_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::atomic<bool> ending_ = false;
  std::vector<std::thread> threads_;
};

// TOWERS_REPEATS, or few: each is a run.
int repeats() {
  const char* number = std::getenv("TOWERS_REPEATS");
  return number != nullptr ? std::atoi(number) : 3;
}

}  // namespace

TEST_CASE("the same seed gives equal losses and equal checkpoints, another seed does not") {
  TemporaryFolder folder;
  const ProcessResult first = quick_run(folder.path() / "a", 21);
  const ProcessResult again = quick_run(folder.path() / "b", 21);
  const ProcessResult other = quick_run(folder.path() / "c", 21, {"--seed=8"});
  REQUIRE(first.exit_code == 0);
  CHECK(losses_of(first.out) == losses_of(again.out));
  CHECK(checkpoint_bytes(folder.path() / "a", 20) == checkpoint_bytes(folder.path() / "b", 20));
  CHECK(losses_of(first.out) != losses_of(other.out));
  CHECK(checkpoint_bytes(folder.path() / "a", 20) != checkpoint_bytes(folder.path() / "c", 20));
}

TEST_CASE("threads and CPU devices do not change a byte") {
  TemporaryFolder folder;
  const std::vector<std::string> base = {"--num_gpus=3"};
  REQUIRE(quick_run(folder.path() / "base", 6, base).exit_code == 0);
  const std::string expected = checkpoint_bytes(folder.path() / "base", 5);
  REQUIRE_FALSE(expected.empty());
  int n = 0;
  for (const std::string flag : {"--input_threads=0", "--input_threads=8", "--compute_threads=1",
                                 "--compute_threads=5", "--cpu_devices=2", "--cpu_devices=3"}) {
    INFO(flag);
    const auto run = folder.path() / ("run" + std::to_string(n++));
    CHECK(quick_run(run, 6, {"--num_gpus=3", flag}).exit_code == 0);
    CHECK(checkpoint_bytes(run, 5) == expected);
  }
}

TEST_CASE("runs repeat with 1 to 8 threads, with and without load, stopped at any step") {
  constexpr int kSteps = 12;
  TemporaryFolder folder;
  const auto run = folder.path() / "run";
  std::string expected;
  for (int i = 0; i <= repeats(); ++i) {
    // Of nine repetitions each number of threads comes up at both places, in other pairs.
    const std::vector<std::string> threads = {"--input_threads=" + std::to_string(1 + i % 8),
                                              "--compute_threads=" + std::to_string(1 + 3 * i % 8)};
    const int stop = i % kSteps;  // 0: it goes through
    INFO(threads[0] << " " << threads[1] << ", stopped after " << stop << " steps");
    std::optional<Load> load;
    if (i % 2 == 1) load.emplace();
    std::filesystem::remove_all(run);
    if (stop > 0) REQUIRE(quick_run(run, stop, threads).exit_code == 0);
    std::vector<std::string> rest = threads;
    rest.emplace_back("--resume");
    REQUIRE(quick_run(run, kSteps, rest).exit_code == 0);
    const std::string bytes = checkpoint_bytes(run, kSteps - 1);
    if (i == 0) expected = bytes;
    REQUIRE_FALSE(bytes.empty());
    REQUIRE(bytes == expected);
  }
}

TEST_CASE("four towers on one, two or four devices, stopped on four and resumed on one") {
  TemporaryFolder folder;
  const auto four = [&](const std::string& name, int steps, const std::string& devices,
                        const std::string& resume = "--noresume") {
    REQUIRE(quick_run(folder.path() / name, steps,
                      {"--num_gpus=4", "--batch_size=4", "--cpu_devices=" + devices, resume})
                .exit_code == 0);
    return checkpoint_bytes(folder.path() / name, steps - 1);
  };
  const std::string expected = four("one", 6, "1");
  REQUIRE_FALSE(expected.empty());
  CHECK(four("two", 6, "2") == expected);
  CHECK(four("four", 6, "4") == expected);
  four("parts", 3, "4");
  CHECK(four("parts", 6, "1", "--resume") == expected);
}

TEST_CASE("a run stopped and resumed ends with the bytes of an uninterrupted one") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "whole", 20).exit_code == 0);
  REQUIRE(quick_run(folder.path() / "parts", 9).exit_code == 0);
  const ProcessResult rest = quick_run(folder.path() / "parts", 20, {"--resume"});
  INFO(rest.err);
  REQUIRE(rest.exit_code == 0);
  CHECK(contains(rest.err, "at step 9"));
  CHECK(checkpoint_bytes(folder.path() / "whole", 19) ==
        checkpoint_bytes(folder.path() / "parts", 19));
}

TEST_CASE("a resumed run takes the stored seed") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "whole", 6).exit_code == 0);
  REQUIRE(quick_run(folder.path() / "parts", 3).exit_code == 0);
  const ProcessResult rest =
      run_towers({"--dataset=synthetic", "--batch_size=8", "--max_steps=6", "--resume",
                  "--device=cpu", "--train_dir=" + (folder.path() / "parts").string()});
  REQUIRE(rest.exit_code == 0);
  CHECK(checkpoint_bytes(folder.path() / "whole", 5) ==
        checkpoint_bytes(folder.path() / "parts", 5));
}

TEST_CASE("the stored flagfile and --resume go on as the run was") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "whole", 6).exit_code == 0);
  REQUIRE(quick_run(folder.path() / "parts", 3).exit_code == 0);
  const ProcessResult rest =
      run_towers({"train", "--flagfile=" + (folder.path() / "parts/flags.txt").string(), "--resume",
                  "--max_steps=6"});
  INFO(rest.err);
  REQUIRE(rest.exit_code == 0);
  CHECK(checkpoint_bytes(folder.path() / "whole", 5) ==
        checkpoint_bytes(folder.path() / "parts", 5));
}

TEST_CASE("a resumed run goes on at its example count with another batch and more towers") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 4).exit_code == 0);  // 32 examples
  const ProcessResult wider =
      quick_run(folder.path() / "run", 6, {"--resume", "--batch_size=4", "--num_gpus=3"});
  INFO(wider.err);
  REQUIRE(wider.exit_code == 0);  // 24 more
  CHECK(contains(wider.err, "--batch_size=4 (was 8)"));
  CHECK(contains(read_file(folder.path() / "run/flags.txt"), "model.ckpt-5: 56"));
}

TEST_CASE("a folder that was moved resumes") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "here", 3).exit_code == 0);
  std::filesystem::rename(folder.path() / "here", folder.path() / "there");
  const ProcessResult rest = quick_run(folder.path() / "there", 5, {"--resume"});
  CHECK(rest.exit_code == 0);
  CHECK(contains(rest.err, "at step 3"));
}

TEST_CASE("a run at or past --max_steps says so and writes nothing") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 3).exit_code == 0);
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path() / "run"), {});
  };
  const auto before = count();
  const ProcessResult again = quick_run(folder.path() / "run", 3, {"--resume"});
  CHECK(again.exit_code == 0);
  CHECK(contains(again.err, "--max_steps=3"));
  CHECK(losses_of(again.out).empty());
  CHECK(count() == before);
}

TEST_CASE("flag --resume in an empty folder starts at 0 and says so") {
  TemporaryFolder folder;
  const ProcessResult run = quick_run(folder.path() / "run", 2, {"--resume"});
  CHECK(run.exit_code == 0);
  CHECK(contains(run.err, "starting at step 0"));
}
