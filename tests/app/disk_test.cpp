// Disks that are full, read-only or elsewhere, and a clock that is wrong.

#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/app/former_run.h"
#include "tests/app/private_mounts.h"

using namespace towers::test;
namespace fs = std::filesystem;

TEST_CASE("a full disk is told once, and now and then again, and training goes on") {
  if (!kShim) return skip("a sanitizer does not let a library be preloaded");
  Former former;
  const fs::path dir = former.copy();
  // From the first checkpoint on: the start's calls are fewer than 12, those of a save more.
  const ProcessResult full = former.run(42, kResume, std::to_string(ENOSPC), 12, 1000000);
  INFO(full.err);
  CHECK(full.exit_code == 1);
  CHECK(losses_of(full.out).back().starts_with("step 40,"));
  CHECK(contains(full.err, "still so, 16 times by now: "));
  CHECK(contains(full.err, "the last good checkpoint is " + (dir / "model.ckpt-1").string()));
  // 40 saves and 20 summaries failed.
  CHECK(count(full.err, "model.ckpt-") < 12);
  CHECK(count(full.err, "tfevents") < 8);
  CHECK(faults_in(dir) == "");
  CHECK(global_step_of(dir) == 2);
  check_resumes(dir);
}

TEST_CASE("a disk that has room again is told, and nothing is wrong in the end") {
  if (!kShim) return skip("a sanitizer does not let a library be preloaded");
  Former former;
  const fs::path dir = former.copy();
  const ProcessResult run = former.run(42, kResume, std::to_string(ENOSPC), 12, 30);
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(count(run.err, "saving works again: " + dir.string()) == 1);
  CHECK(faults_after_end(dir, 2) == "");
  CHECK(global_step_of(dir) == 42);
}

TEST_CASE("the line's checkpoints: a full disk is told now and then, and its end once") {
  if (!kShim) return skip("a sanitizer does not let a library be preloaded");
  TemporaryFolder folder;
  const fs::path dir = fs::canonical(folder.path());
  const auto fit = [&](const char* times) {
    return run_towers(
        {"linear", "--max_steps=200000", "--save_model_secs=0.001",
         "--checkpoint_dir=" + dir.string()},
        {.environment = {std::string("LD_PRELOAD=") + TOWERS_FAULT_SHIM,
                         "TOWERS_FAULT_DIR=" + dir.string(),
                         "TOWERS_FAULT=" + std::to_string(ENOSPC), "TOWERS_FAULT_AT=60",
                         std::string("TOWERS_FAULT_TIMES=") + times,
                         "TOWERS_FAULT_LOG=" + (folder.path() / "log").string()}});
  };
  const ProcessResult full = fit("1000000");
  INFO(full.err);
  CHECK(full.exit_code == 1);
  CHECK(contains(full.err, "still so, 16 times by now: cannot write"));
  CHECK(contains(full.err, "the last good checkpoint is " + (dir / "model.ckpt-").string()));
  CHECK(count(full.err, "model.ckpt-") < 24);
  const ProcessResult again = fit("40");
  INFO(again.err);
  CHECK(again.exit_code == 0);
  CHECK(contains(again.err, "going on from " + dir.string()));
  CHECK(count(again.err, "saving works again: " + dir.string()) == 1);
}

TEST_CASE("a disk without room for another checkpoint keeps what is there") {
  if (!private_mounts_allowed()) return skip("mounting a small file system is not allowed here");
  TemporaryFolder folder;
  const fs::path disk = folder.path() / "disk", dir = disk / "run";
  REQUIRE(mount_memory(disk, 40));
  REQUIRE(quick_run(dir, 2, anew()).exit_code == 0);
  // 5 MB are left of which a checkpoint needs 8.5; told before a step is made.
  const std::uint64_t free = fs::space(disk).available;
  write_file(disk / "filler", std::string(free - (5 << 20), 'x'));
  const ProcessResult refused = quick_run(dir, 4, kResume);
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "room is needed"));

  // Where all are kept, those that are there make no room.
  fs::remove(disk / "filler");
  std::vector<std::string> all = kResume;
  all.push_back("--max_to_keep=0");
  const ProcessResult kept = quick_run(dir, 5, all);
  CHECK(kept.exit_code == 1);
  CHECK(contains(kept.err, "room is needed for 4 checkpoints"));
  CHECK(global_step_of(dir) == 2);

  // The disk fills up only when the run is under way.
  std::vector<std::string> flags = quick_args(dir, 1000000, kResume);
  Process run(flags);
  REQUIRE(run.wait_for_output("step 10,"));
  for (char c = 'a'; c < 'e'; ++c) write_file(disk / std::string(1, c), std::string(12 << 20, 'x'));
  REQUIRE(run.wait_for_output("No space left on device; free some space"));
  run.signal(SIGTERM);
  const ProcessResult result = run.wait();
  INFO(result.err);
  CHECK(result.exit_code == 1);  // not 143: what was asked to be saved is not
  CHECK(contains(result.err, "the last good checkpoint is " + dir.string()));
  CHECK(faults_in(dir) == "");
  for (char c = 'a'; c < 'e'; ++c) fs::remove(disk / std::string(1, c));
  check_resumes(dir);
}

TEST_CASE("a read-only folder is refused at once, and can be evaluated") {
  if (!private_mounts_allowed()) return skip("mounting a file system is not allowed here");
  TemporaryFolder folder;
  const fs::path dir = folder.path() / "run";
  REQUIRE(quick_run(dir, 2, anew()).exit_code == 0);
  REQUIRE(mount_read_only(dir));
  for (const std::vector<std::string>& flags : {anew(), kResume}) {
    const ProcessResult run = quick_run(dir, 4, flags);
    CHECK(run.exit_code == 1);
    CHECK(lines_of(run.err).size() == 1);
    CHECK(contains(run.err, dir.string()));
    CHECK(contains(run.err, "Read-only file system"));
  }
  CHECK(run_towers({"eval", "--dataset=synthetic", "--device=cpu", "--run_once", "--num_examples=8",
                    "--checkpoint_dir=" + dir.string(),
                    "--eval_dir=" + (folder.path() / "eval").string()})
            .exit_code == 0);
  CHECK(run_towers({"inspect", dir.string()}).exit_code == 0);
}

TEST_CASE("a train_dir on another file system than /tmp is as good") {
  struct stat here {
  }, there{};
  REQUIRE(::stat(fs::temp_directory_path().c_str(), &here) == 0);
  if (::stat("/dev/shm", &there) != 0 || here.st_dev == there.st_dev)
    return skip("there is no other file system at /dev/shm");
  std::string pattern = "/dev/shm/towers-test-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return skip("/dev/shm cannot be written");
  CHECK(quick_run(pattern + "/run", 2, anew()).exit_code == 0);
  check_resumes(pattern + "/run");
  fs::remove_all(pattern);
}

TEST_CASE("a clock that was set back, or stands still, does no harm") {
  if (!kShim) return skip("a sanitizer does not let a library be preloaded");
  Former former;
  const fs::path dir = former.copy();
  for (int i = 0; i < 2; ++i) {  // the same second twice: no file is written over
    const ProcessResult run =
        quick_run(dir, 4 + i, kResume,
                  {.environment = {std::string("LD_PRELOAD=") + TOWERS_FAULT_SHIM,
                                   "TOWERS_CLOCK=1000000000"}});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(faults_after_end(dir, 2) == "");
  }
  std::size_t old = 0, events = 0;
  for (const auto& file : fs::directory_iterator(dir)) {
    const std::string name = file.path().filename().string();
    events += name.starts_with("events.") ? 1u : 0u;
    old += name.starts_with("events.out.tfevents.1000000000.") ? 1u : 0u;
  }
  CHECK(old == 2);
  CHECK(events == 3);
  check_resumes(dir);
}

TEST_CASE("a disk that does not answer is named, and the run goes on when it does") {
  if (!kShim) return skip("a sanitizer does not let a library be preloaded");
  Former former;
  std::vector<std::string> flags = kResume;
  flags.push_back("--stall_seconds=0.5");
  former.copy();
  // The 30th call is one of the first checkpoint's.
  const ProcessResult run = former.run(5, flags, "wait 3", 30);
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.err, "towers: warning: nothing has moved for "));
  CHECK(contains(run.err, "waiting for the disk, to save a checkpoint"));
  CHECK(contains(run.err, "going on after a standstill"));
  CHECK(global_step_of(former.dir()) == 5);
}

TEST_CASE("writing the timeline is time in saving, not the next step's wait for input") {
  if (!kShim) return skip("a sanitizer does not let a library be preloaded");
  TemporaryFolder folder;
  const fs::path dir = fs::canonical(folder.path()), log = dir / "calls";
  const auto traced = [&](const std::string& at) {
    return quick_run(
        dir / "run", 3,
        {"--trace_file=" + (dir / "trace.json").string(), "--trace_steps=1",
         "--summary_every=1000"},
        {.environment = {std::string("LD_PRELOAD=") + TOWERS_FAULT_SHIM,
                         "TOWERS_FAULT_DIR=" + (dir / "trace.json").string(), "TOWERS_FAULT=wait 2",
                         "TOWERS_FAULT_AT=" + at, "TOWERS_FAULT_LOG=" + log.string()}});
  };
  REQUIRE(traced("999").exit_code == 0);
  const std::size_t calls = lines_of(read_file(log)).size();
  REQUIRE(calls > 0);
  const ProcessResult run = traced(std::to_string(calls - 1));  // the last one, of writing
  INFO(run.out);
  REQUIRE(run.exit_code == 0);
  std::smatch seconds;
  REQUIRE(std::regex_search(run.out, seconds,
                            std::regex(R"(time in saving +[\d.]+ %  \(([\d.]+) s\))")));
  CHECK(std::stod(seconds[1]) >= 2);
}
