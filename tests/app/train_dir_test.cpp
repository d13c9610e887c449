// Whose files are deleted, and who may write where.

#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include "tests/app/quick_run.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kNobody = 65534;

bool running_as_root() {
  return ::geteuid() == 0;
}

}  // namespace

TEST_CASE("a new run deletes a former run's files and says so in one line") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 4).exit_code == 0);
  const ProcessResult again = quick_run(folder.path() / "run", 1);
  REQUIRE(again.exit_code == 0);
  CHECK_FALSE(fs::exists(folder.path() / "run/model.ckpt-3.index"));
  CHECK(fs::exists(folder.path() / "run/model.ckpt-0.index"));
  CHECK(contains(again.err, "deleted"));
}

TEST_CASE("a folder with a foreign file is refused and keeps everything") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 4).exit_code == 0);
  write_file(folder.path() / "run/keep.txt", "mine");
  const ProcessResult refused = quick_run(folder.path() / "run", 1);
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "keep.txt"));
  CHECK(contains(refused.err, "--overwrite"));
  CHECK(fs::exists(folder.path() / "run/model.ckpt-3.index"));
  const ProcessResult overwritten = quick_run(folder.path() / "run", 1, {"--overwrite"});
  CHECK(overwritten.exit_code == 0);
  CHECK(read_file(folder.path() / "run/keep.txt") == "mine");
  CHECK_FALSE(fs::exists(folder.path() / "run/model.ckpt-3.index"));
}

TEST_CASE("the root and the home folder are always refused") {
  TemporaryFolder home;
  write_file(home.path() / "letter.txt", "dear");
  ProcessOptions at_home{.environment = {"HOME=" + home.path().string()}};
  for (const std::string flag : {"--overwrite", "--nooverwrite"}) {
    CHECK(quick_run("/", 1, {flag}).exit_code == 1);
    CHECK(quick_run(home.path(), 1, {flag}, at_home).exit_code == 1);
    CHECK(quick_run(home.path() / ".", 1, {flag}, at_home).exit_code == 1);
  }
  CHECK(fs::exists(home.path() / "letter.txt"));
}

TEST_CASE("what fails before step 1 deletes nothing") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 4).exit_code == 0);
  const std::string train_dir = "--train_dir=" + (folder.path() / "run").string();
  CHECK(run_towers({train_dir, "--data_dir=" + (folder.path() / "none").string(), "--nodownload"})
            .exit_code == 1);
  CHECK(
      run_towers({train_dir, "--dataset=synthetic", "--init_from=/nonexistent/model"}).exit_code ==
      1);
  CHECK(run_towers({train_dir, "--dataset=synthetic", "--num_gpu=2"}).exit_code == 2);
  CHECK(run_towers({train_dir, "--dataset=synthetic", "--device=cpu", "--precision=fp16"})
            .exit_code == 1);
  CHECK(fs::exists(folder.path() / "run/model.ckpt-3.index"));
}

TEST_CASE("a flagfile that a person wrote is foreign, whatever its name") {
  TemporaryFolder folder;
  fs::create_directory(folder.path() / "run");
  write_file(folder.path() / "run/flags.txt", "--batch_size=8\n");
  const ProcessResult run = quick_run(folder.path() / "run", 1);
  CHECK(run.exit_code == 1);
  CHECK(contains(run.err, "flags.txt"));
  CHECK(read_file(folder.path() / "run/flags.txt") == "--batch_size=8\n");
}

TEST_CASE("checkpoints without a state file are not trained over by --resume") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 3).exit_code == 0);
  fs::remove(folder.path() / "run/checkpoint");
  const std::string before = checkpoint_bytes(folder.path() / "run", 2);
  const ProcessResult run = quick_run(folder.path() / "run", 5, {"--resume"});
  CHECK(run.exit_code == 1);
  CHECK(contains(run.err, "model.ckpt-2"));
  CHECK(checkpoint_bytes(folder.path() / "run", 2) == before);
}

TEST_CASE("a checkpoint that no file names, since its save was killed, is gone on from") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  fs::remove(run / "checkpoint");
  const ProcessResult resumed = quick_run(run, 3, {"--resume"});
  CHECK(resumed.exit_code == 0);
  CHECK(contains(resumed.err, "resuming from " + (run / "model.ckpt-0").string()));
  CHECK(contains(read_file(run / "checkpoint"), "all_model_checkpoint_paths: \"model.ckpt-0\""));
  // Without its line in flags.txt it may be anybody's.
  REQUIRE(quick_run(run, 1).exit_code == 0);
  fs::remove(run / "checkpoint");
  write_file(run / "flags.txt", "# The flags of this run.\n--seed=7\n");
  CHECK(quick_run(run, 3, {"--resume"}).exit_code == 1);
}

TEST_CASE("variables come from no checkpoint that the new run deletes") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", link = folder.path() / "link";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  fs::create_directory_symlink(run, link);
  for (const fs::path& source : {run / "model.ckpt-0", link / "model.ckpt-0"}) {
    const ProcessResult refused = quick_run(run, 1, {"--init_from=" + source.string()});
    CHECK(refused.exit_code == 2);
    CHECK(contains(refused.err, "--init_from=" + source.string() + " lies in --train_dir"));
    CHECK(fs::exists(run / "model.ckpt-0.index"));
  }
  CHECK(quick_run(folder.path() / "other", 1, {"--init_from=" + (run / "model.ckpt-0").string()})
            .exit_code == 0);
  // Nor the folder's latest, by the folder's name; elsewhere that is taken.
  CHECK(quick_run(run, 1, {"--init_from=" + run.string()}).exit_code == 2);
  const ProcessResult latest =
      quick_run(folder.path() / "other", 1, {"--init_from=" + run.string()});
  CHECK(latest.exit_code == 0);
  CHECK(contains(latest.err, "variables from " + (run / "model.ckpt-0").string() + ", step 0"));
  // Nor the best one, which goes with the others.
  fs::create_directory(run / "best");
  for (const char* name : {"checkpoint", "model.ckpt-0.index", "model.ckpt-0.data-00000-of-00001"})
    fs::copy(run / name, run / "best" / name);
  CHECK(quick_run(run, 1, {"--init_from=" + (run / "best").string()}).exit_code == 2);
  CHECK(fs::exists(run / "best/model.ckpt-0.index"));
}

TEST_CASE(
    "a run's own flags delete it only when told, and go on from it wherever --resume stands") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", other = folder.path() / "other";
  REQUIRE(quick_run(run, 1).exit_code == 0);
  const std::string flags = "--flagfile=" + (run / "flags.txt").string();
  // With another folder named too early, too.
  for (const std::string& early : {std::string("--quiet"), "--train_dir=" + other.string()}) {
    const ProcessResult refused = run_towers({early, flags, "--max_steps=2"});
    CHECK(refused.exit_code == 2);
    CHECK(lines_of(refused.err).size() == 1);
    CHECK(contains(refused.err, flags + " is of the run in --train_dir=" + run.string()));
    CHECK(fs::exists(run / "model.ckpt-0.index"));
  }
  const ProcessResult resumed = run_towers({"--resume", flags, "--max_steps=2"});
  CHECK(resumed.exit_code == 0);
  CHECK(contains(resumed.err, "resuming from " + (run / "model.ckpt-0").string()));
  CHECK(run_towers({flags, "--train_dir=" + other.string()}).exit_code == 0);
  const ProcessResult anew = run_towers({"--overwrite", flags, "--max_steps=1"});
  CHECK(anew.exit_code == 0);
  CHECK(contains(anew.err, "of a former run in " + run.string()));
}

TEST_CASE("a run that goes on says that it leaves --init_from out") {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "run", other = folder.path() / "other";
  REQUIRE(quick_run(other, 1).exit_code == 0);
  const std::vector<std::string> flags{"--resume",
                                       "--init_from=" + (other / "model.ckpt-0").string()};
  // So that a job may be submitted again as it was: first from there, then from its own.
  const ProcessResult first = quick_run(run, 2, flags), second = quick_run(run, 3, flags);
  CHECK(first.exit_code == 0);
  CHECK(contains(first.err, "variables from "));
  CHECK_FALSE(contains(first.err, "left out where a run goes on"));
  CHECK(second.exit_code == 0);
  CHECK(contains(second.err, "model.ckpt-1 at step 2"));
  CHECK(contains(second.err, "--init_from=" + (other / "model.ckpt-0").string() +
                                 " is for a start at step 0, and left out where a run goes on"));
}

TEST_CASE("a value that is not supported is told before anything is made") {
  TemporaryFolder folder;
  for (const std::string flag : {"--use_fp16", "--precision=fp16"}) {
    INFO(flag);
    const ProcessResult run = quick_run(folder.path() / "run", 1, {"--device=cpu", flag});
    CHECK(run.exit_code == 1);
    CHECK(contains(run.err, "--precision=fp16 (--use_fp16) is there for GPUs alone; on the CPU"));
    CHECK_FALSE(fs::exists(folder.path() / "run"));
  }
}

TEST_CASE("the checkpoint file of a new run names no checkpoint of a former one") {
  TemporaryFolder folder;
  REQUIRE(quick_run(folder.path() / "run", 4, {"--checkpoint_every=1"}).exit_code == 0);
  REQUIRE(quick_run(folder.path() / "run", 1).exit_code == 0);
  CHECK_FALSE(contains(read_file(folder.path() / "run/checkpoint"), "model.ckpt-3"));
  write_file(folder.path() / "run/checkpoint", "damaged {");
  CHECK(quick_run(folder.path() / "run", 1).exit_code == 0);
}

TEST_CASE("a second run in the same folder is refused and names the first") {
  TemporaryFolder folder;
  Process first(quick_args(folder.path() / "run", 1000000));
  REQUIRE(first.wait_for_output("step 0,"));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--resume"}}) {
    const ProcessResult second = quick_run(folder.path() / "run", 1, more);
    CHECK(second.exit_code == 1);
    CHECK(contains(second.err, std::to_string(first.pid())));
  }
  first.signal(SIGTERM);
  CHECK(first.wait().exit_code == 143);
}

TEST_CASE("an output folder of another user is an error with path and reason") {
  if (!running_as_root()) return skip("needs root to become another user");
  TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_all | fs::perms::group_exec |
                                     fs::perms::others_exec | fs::perms::others_read);
  const ProcessOptions as_nobody{.environment = {"HOME=/nonexistent"}, .user = kNobody};
  const ProcessResult train = quick_run(folder.path() / "run", 1, {}, as_nobody);
  CHECK(train.exit_code == 1);
  CHECK(contains(train.err, folder.path().string()));
  CHECK(contains(train.err, "ermission denied"));
  REQUIRE(quick_run(folder.path() / "mine", 1).exit_code == 0);
  fs::permissions(folder.path() / "mine", fs::perms::others_read | fs::perms::others_exec,
                  fs::perm_options::add);
  const ProcessResult eval =
      run_towers({"eval", "--dataset=synthetic", "--device=cpu", "--run_once",
                  "--checkpoint_dir=" + (folder.path() / "mine").string(),
                  "--eval_dir=" + (folder.path() / "eval").string()},
                 as_nobody);
  CHECK(eval.exit_code == 1);
  CHECK(contains(eval.err, (folder.path() / "eval").string()));
}

TEST_CASE("names with spaces and UTF-8 work") {
  TemporaryFolder folder;
  const fs::path odd = folder.path() / "été à Zürich \"x\"";
  REQUIRE(quick_run(odd, 2).exit_code == 0);
  CHECK(quick_run(odd, 3, {"--resume"}).exit_code == 0);
}
