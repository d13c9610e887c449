// What goes wrong on one rank ends all of them, with one line that says where and why.

#include <catch2/catch.hpp>

#include <signal.h>
#include <unistd.h>

#include <regex>

#include "tests/app/run_check.h"
#include "tests/cluster/mpirun.h"

using namespace towers::test;
namespace fs = std::filesystem;

namespace {

const Args kFew = {"--display_every=1", "--summary_every=1000", "--checkpoint_every=2"};

// Lines of ours, not mpirun's.
Args errors_of(const ProcessResult& result) {
  Args errors;
  for (const std::string& line : lines_of(result.err))
    if (contains(line, "towers: error: ")) errors.push_back(line);
  return errors;
}

std::string host() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// Rank 0 with the first arguments, rank 1 with the others. A shell chooses: with a ":" between them
// Debian 13's mpirun (Open MPI 5.0.7) ends by SIGSEGV, whatever it is to start.
ProcessResult two_ranks(const Args& first, const Args& second) {
  const Args chooser = {
      "--oversubscribe",
      "--bind-to",
      "none",
      "-np",
      "2",
      "bash",
      "-c",
      R"(n=$1; shift; ((OMPI_COMM_WORLD_RANK)) && exec "$0" "${@:n+1}"; exec "$0" "${@:1:n}")",
      TOWERS_BINARY,
      std::to_string(first.size())};
  return run_towers(with(with(chooser, first), second), under_mpirun());
}

// A data_dir in CIFAR-10's form that takes no room.
void make_empty_pictures(const fs::path& dir) {
  fs::create_directories(dir / "cifar-10-batches-bin");
  for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                           "data_batch_5", "test_batch"}) {
    const fs::path file = dir / "cifar-10-batches-bin" / (std::string(name) + ".bin");
    write_file(file, "");
    fs::resize_file(file, 10000 * 3073);
  }
}

}  // namespace

TEST_CASE("an error on one rank is said once, with its place, before anything is deleted") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const fs::path dir = folder.path() / "run";
  REQUIRE(quick_run(dir, 2, kFew).exit_code == 0);
  const std::string before = checkpoint_bytes(dir, 1);

  make_empty_pictures(folder.path() / "data");
  Args args = quick_args(dir, 4, with(kFew, {"--nodownload", "--dataset=cifar10"}));
  const auto data = [&](const char* name) {
    return Args{"--data_dir=" + (folder.path() / name).string()};
  };
  const ProcessResult failed = two_ranks(with(args, data("data")), with(args, data("nothing")));
  INFO(failed.err);
  CHECK(failed.exit_code == 1);
  REQUIRE(errors_of(failed).size() == 1);
  CHECK(contains(errors_of(failed).front(), "rank 1 on " + host() + ": no CIFAR-10 in " +
                                                (folder.path() / "nothing").string()));
  CHECK(checkpoint_bytes(dir, 1) == before);
}

TEST_CASE("flags that differ between ranks are named") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const Args args = quick_args(folder.path() / "run", 4, kFew);
  const ProcessResult failed = two_ranks(args, with(args, {"--learning_rate=0.2"}));
  INFO(failed.err);
  CHECK(failed.exit_code == 2);
  REQUIRE(errors_of(failed).size() == 1);
  CHECK(contains(errors_of(failed).front(),
                 "rank 1 on " + host() + ": --learning_rate is 0.2 here and 0.1 on rank 0"));
  CHECK_FALSE(fs::exists(folder.path() / "run"));
}

TEST_CASE("vector targets that differ between ranks are named, however they were chosen") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const std::string version = run_towers({"--version"}).out;
  std::smatch targets;
  if (!std::regex_search(version, targets, std::regex("CPU: (\\w+), (\\w+)")))
    return skip("this processor has one vector target alone");
  const TemporaryFolder folder;
  const std::string first = targets[1], second = targets[2];
  const Args args = quick_args(folder.path() / "run", 4, kFew);
  const ProcessResult failed = two_ranks(args, with(args, {"--simd=" + second}));
  INFO(failed.err);
  CHECK(failed.exit_code == 2);
  REQUIRE(errors_of(failed).size() == 1);
  CHECK(contains(errors_of(failed).front(),
                 "--simd is " + second + " here and " + first + " on rank 0"));
  CHECK(two_ranks(args, with(args, {"--simd=" + first})).exit_code == 0);
}

TEST_CASE("parameter servers and mpirun do not go together") {
  ProcessOptions options;
  options.environment = {"OMPI_COMM_WORLD_SIZE=2"};
  const TemporaryFolder folder;
  const Args addresses = {"--ps_hosts=localhost:2222", "--worker_hosts=localhost:2223",
                          "--job_name=worker", "--task_index=0"};
  for (const Args& args :
       {quick_args(folder.path() / "run", 4, addresses), with({"linear"}, addresses)}) {
    const ProcessResult failed = run_towers(args, options);
    INFO(failed.err);
    CHECK(failed.exit_code == 2);
    REQUIRE(errors_of(failed).size() == 1);
    CHECK(contains(errors_of(failed).front(), "(OMPI_COMM_WORLD_SIZE is set)"));
  }
  CHECK_FALSE(fs::exists(folder.path() / "run"));
}

TEST_CASE("ranks do not fit one line each") {
  ProcessOptions options;
  options.environment = {"OMPI_COMM_WORLD_SIZE=2"};
  const TemporaryFolder folder;
  const std::string dir = "--checkpoint_dir=" + (folder.path() / "run").string();
  const ProcessResult failed = run_towers({"linear", "--max_steps=10", dir}, options);
  CHECK(failed.exit_code == 2);
  REQUIRE(errors_of(failed).size() == 1);
  CHECK(contains(errors_of(failed).front(), "one of several processes (OMPI_COMM_WORLD_SIZE)"));
  CHECK_FALSE(fs::exists(folder.path() / "run"));
}

TEST_CASE("a loss that is not finite is named with the tower's number among all") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const auto args = [&](const char* name, const char* towers) {
    return quick_args(folder.path() / name, 50, with(kFew, {"--learning_rate=1e20", towers}));
  };
  const ProcessResult alone = run_towers(args("alone", "--num_gpus=2"));
  const ProcessResult ranks = mpirun(2, args("ranks", "--num_gpus=1"));
  INFO(alone.err << ranks.err);
  CHECK(ranks.exit_code == 1);
  REQUIRE(errors_of(alone).size() == 1);
  const std::regex folders("/(alone|ranks)/");
  const auto without_folders = [&](const ProcessResult& result) {
    return std::regex_replace(errors_of(result).front(), folders, "/");
  };
  REQUIRE(errors_of(ranks).size() == 1);
  CHECK(without_folders(ranks) == without_folders(alone));
}

TEST_CASE("when a rank is killed all end, and the run can go on") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  const fs::path dir = folder.path() / "run";
  for (const int victim : {1, 0}) {
    INFO("rank " << victim);
    Process run(mpirun_args(2, quick_args(dir, 1000000, with(kFew, {"--resume"}))), under_mpirun());
    REQUIRE(run.wait_for_output("loss = "));
    const pid_t rank = rank_process(run, victim);
    REQUIRE(rank > 0);
    REQUIRE(::kill(rank, SIGKILL) == 0);
    CHECK(run.wait().exit_code != 0);
    CHECK(faults_in(dir) == "");
  }
  const auto steps = static_cast<int>(global_step_of(dir));
  const ProcessResult resumed = mpirun(2, quick_args(dir, steps + 2, with(kFew, {"--resume"})));
  INFO(resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK(global_step_of(dir) == steps + 2);
}

TEST_CASE("a rank that does not answer is what the others are said to wait for") {
  if (const std::string why = why_no_mpi(); !why.empty()) return skip(why);
  const TemporaryFolder folder;
  Process run(mpirun_args(2, quick_args(folder.path() / "run", 1000000,
                                        with(kFew, {"--stall_seconds=0.2"}))),
              under_mpirun());
  REQUIRE(run.wait_for_output("loss = "));
  const pid_t rank = rank_process(run, 1);
  REQUIRE(rank > 0);
  REQUIRE(::kill(rank, SIGSTOP) == 0);
  CHECK(run.wait_for_output("waiting for a rank, for its gradients"));
  REQUIRE(::kill(rank, SIGCONT) == 0);
  CHECK(run.wait_for_output("going on after a standstill"));
  REQUIRE(::kill(rank, SIGUSR1) == 0);
  CHECK(run.wait().exit_code == 0);
}

TEST_CASE("without the module, one of several processes says what is missing") {
  const TemporaryFolder folder;
  ProcessOptions options;
  options.environment = {"OMPI_COMM_WORLD_SIZE=2", "TOWERS_MPI_MODULE=/nowhere/libtowers_mpi.so"};
  const ProcessResult failed = quick_run(folder.path() / "run", 2, kFew, options);
  CHECK(failed.exit_code == 1);
  REQUIRE(errors_of(failed).size() == 1);
  const std::string error = errors_of(failed).front();
  CHECK(contains(error, "started as one of 2 processes (OMPI_COMM_WORLD_SIZE)"));
  CHECK(contains(error, "/nowhere/libtowers_mpi.so"));
  CHECK(contains(error, "libopenmpi-dev"));
  CHECK_FALSE(fs::exists(folder.path() / "run"));

  // One that Slurm has started without MPI is alone.
  options.environment = {"SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=1"};
  CHECK(quick_run(folder.path() / "run", 2, kFew, options).exit_code == 0);
}
