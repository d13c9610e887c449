// The same seed gives the same numbers, however the work is divided, stopped and resumed.

#include <catch2/catch.hpp>

#include "tests/app/quick_run.h"

using namespace towers::test;

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
