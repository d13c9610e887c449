// Ranks make the numbers of one process with as many towers, byte for byte.

#include <catch2/catch.hpp>

#include <signal.h>

#include "tests/app/run_check.h"
#include "tests/cluster/mpirun.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

const Args kOften = {"--display_every=1", "--summary_every=1000", "--checkpoint_every=3"};

Args flags(int count) {
  return with(kOften, {"--num_gpus=" + std::to_string(count)});
}

}  // namespace

TEST_CASE("ranks train as one process with as many towers does, and go on in any number") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const fs::path alone = folder.path() / "alone", ranks = folder.path() / "ranks";
  const ProcessResult expected = quick_run(alone, 4, flags(4));
  INFO(expected.err);
  REQUIRE(expected.exit_code == 0);
  REQUIRE(losses_of(expected.out).size() == 4);

  const ProcessResult four = mpirun(4, quick_args(ranks, 4, flags(1)));
  INFO(four.err);
  REQUIRE(four.exit_code == 0);
  CHECK(losses_of(four.out) == losses_of(expected.out));
  CHECK(checkpoint_bytes(ranks, 3) == checkpoint_bytes(alone, 3));
  CHECK(faults_after_end(ranks, 5) == "");
  CHECK(contains(four.out, "4 x 1 = 4 (processes x towers of each)"));
  CHECK(contains(four.out, "8 x 4 = 32 (per tower x towers)"));
  CHECK(contains(four.err, "running: tower_3"));
  CHECK_FALSE(contains(four.err, "running: tower_4"));

  // Two ranks with two towers each go on with what four began.
  const ProcessResult two = mpirun(2, quick_args(ranks, 7, with(flags(2), {"--resume"})));
  INFO(two.err);
  REQUIRE(two.exit_code == 0);
  REQUIRE(quick_run(alone, 7, with(flags(4), {"--resume"})).exit_code == 0);
  CHECK(checkpoint_bytes(ranks, 6) == checkpoint_bytes(alone, 6));

  // And two with one each, which take other batches.
  const Args fewer = {"--resume", "--decay_by=examples", "--epochs_per_decay=0.0006"};
  REQUIRE(mpirun(2, quick_args(ranks, 10, with(flags(1), fewer))).exit_code == 0);
  REQUIRE(quick_run(alone, 10, with(flags(2), fewer)).exit_code == 0);
  CHECK(checkpoint_bytes(ranks, 9) == checkpoint_bytes(alone, 9));
}

TEST_CASE("a signal to any rank saves once and ends all with its exit code") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const fs::path dir = folder.path() / "run";
  const Args often = {"--display_every=1", "--checkpoint_every=1000000"};
  Process run(mpirun_args(2, quick_args(dir, 1000000, often)), under_mpirun());
  REQUIRE(run.wait_for_output("step 5, loss"));
  const pid_t rank = rank_process(run, 1);
  REQUIRE(rank > 0);
  REQUIRE(::kill(rank, SIGTERM) == 0);
  const ProcessResult ended = run.wait();
  INFO(ended.err);
  CHECK(ended.exit_code == 128 + SIGTERM);
  CHECK(contains(ended.err, "stopped after step"));
  CHECK(faults_after_end(dir, 2) == "");  // of step 0, and the last

  // Nothing was lost: the step is the last one shown.
  const std::int64_t steps = global_step_of(dir);
  REQUIRE(steps > 5);
  CHECK(losses_of(ended.out).size() == static_cast<std::size_t>(steps));
}

TEST_CASE("the flag --max_seconds ends all ranks at one step, and they have a timeline") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const fs::path dir = folder.path() / "run";
  const fs::path file = folder.path() / "trace.json";
  const std::string timeline = "--trace_file=" + file.string();
  const ProcessResult ended =
      mpirun(2, quick_args(dir, 1000000, with(flags(1), {"--max_seconds=0.5", timeline})));
  INFO(ended.err);
  CHECK(ended.exit_code == 0);
  CHECK(contains(ended.err, "stopped after step"));
  CHECK(faults_after_end(dir, 5) == "");
  // The timeline shows what was exchanged, and on which thread.
  for (const char* name : {"ranks", "agree", "exchange"})
    CHECK(contains(read_file(file), "\"" + std::string(name) + "\""));
}
