// Who dies, comes back, or is told to end, in a training of the CIFAR-10 net.
//
// TOWERS_KILL_ROUNDS=20 in the environment asks for more kills, of any task at random;
// TOWERS_KILL_SEED for other moments.
#include <signal.h>

#include <array>
#include <iostream>
#include <random>

#include "tests/app/run_check.h"
#include "tests/cluster/train_cluster.h"

using namespace towers;
using namespace towers::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

// Ended by signals. Few lines: nobody reads them before the end.
const Cluster::Args endless{"--max_steps=1000000", "--checkpoint_every=1", "--max_to_keep=3",
                            "--worker_timeout=1", "--display_every=1000"};

}  // namespace

TEST_CASE("kill -9 of a worker, the chief or a server: a restart goes on from the checkpoint") {
  const int rounds = number_from("TOWERS_KILL_ROUNDS", 3);
  const int seed = number_from("TOWERS_KILL_SEED", static_cast<int>(std::random_device()() >> 1));
  std::cout << rounds << " rounds in each mode, TOWERS_KILL_SEED=" << seed << std::endl;
  std::mt19937 random(static_cast<unsigned>(seed));
  for (const char* mode : {"--issync=0", "--issync=1"}) {
    const TemporaryFolder folder;
    const fs::path& dir = folder.path();
    const TrainCluster cluster(2, 2, dir, with(endless, {mode}));
    const std::vector<std::pair<std::string, int>> tasks{
        {"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}};
    std::vector<std::unique_ptr<Process>> running(tasks.size());
    const auto start = [&](std::size_t task) {
      running[task] = cluster.start(tasks[task].first, tasks[task].second, {},
                                    {.limit_seconds = 60.0 * (rounds + 2)});
    };
    const auto fail = [&](const std::string& why) {
      for (auto& task : running) {
        task->signal(SIGTERM);
        UNSCOPED_INFO(task->wait().err);
      }
      FAIL(why);
    };
    for (std::size_t task = 0; task < tasks.size(); ++task) start(task);
    REQUIRE(checkpoint_came_after(dir, 1));
    for (int round = 0; round < rounds; ++round) {
      const std::size_t victim =
          rounds < 10 ? std::array<std::size_t, 4>{3, 2, 0, 1}[static_cast<std::size_t>(round) % 4]
                      : random() % 4;
      const int milliseconds = static_cast<int>(random() % 300);
      INFO(mode << ", round " << round << ", after " << milliseconds
                << " ms: " << tasks[victim].first << " " << tasks[victim].second);
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      running[victim]->signal(SIGKILL);
      running[victim]->wait();
      if (victim == 2) REQUIRE(faults_in(dir) == "");  // nobody else writes there
      // Those that are left go on. Without the chief nobody saves, so nothing would show it.
      if (victim == 3 && !checkpoint_came_after(dir, latest_step(dir))) fail("the others stand");
      const std::int64_t before = latest_step(dir);
      start(victim);
      const bool joined =
          tasks[victim].first == "ps" || running[victim]->wait_for_output("takes part from step");
      if (!joined || !checkpoint_came_after(dir, before)) fail("no checkpoint came");
    }
    for (std::size_t worker : {std::size_t{3}, std::size_t{2}}) {
      running[worker]->signal(SIGTERM);
      const ProcessResult result = running[worker]->wait();
      INFO(result.err);
      CHECK(result.exit_code == 143);
    }
    for (std::size_t server : {std::size_t{0}, std::size_t{1}})
      CHECK(running[server]->wait().exit_code == 0);
    CHECK(faults_after_end(dir, 3) == "");
    CHECK(global_step_of(dir) == latest_step(dir) + 1);
  }
}

TEST_CASE("a server that was lost changes nothing in the end: synchronous steps are made again") {
  const TemporaryFolder alone, folder;
  REQUIRE(quick_run(alone.path(), 60, {"--checkpoint_every=1000"}).exit_code == 0);
  const TrainCluster cluster(1, 1, folder.path(),
                             {"--max_steps=60", "--issync=1", "--checkpoint_every=5"});
  auto ps = cluster.start("ps", 0);
  auto chief = cluster.start("worker", 0);
  REQUIRE(checkpoint_came_after(folder.path(), 0));
  ps->signal(SIGKILL);
  ps->wait();  // it has its port until then
  ps = cluster.start("ps", 0);
  const ProcessResult result = chief->wait();
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err, Contains("resuming from "));
  CHECK(checkpoint_bytes(folder.path(), 59) == checkpoint_bytes(alone.path(), 59));
}

TEST_CASE("SIGTERM to the chief saves the current step and says how to go on") {
  const TemporaryFolder folder;
  const TrainCluster cluster(
      1, 2, folder.path(),
      {"--max_steps=1000000", "--issync=1", "--checkpoint_every=1000000", "--display_every=1"});
  auto ps = cluster.start("ps", 0);
  auto chief = cluster.start("worker", 0), worker = cluster.start("worker", 1);
  REQUIRE(chief->wait_for_output(": step 5, "));
  chief->signal(SIGTERM);
  const ProcessResult ended = chief->wait();
  INFO(ended.err);
  CHECK(ended.exit_code == 143);
  const std::int64_t step = latest_step(folder.path());
  CHECK(step >= 5);
  CHECK_THAT(ended.err, Contains("stopped after step " + std::to_string(step)));
  worker->signal(SIGTERM);
  CHECK(worker->wait().exit_code == 143);
  CHECK(ps->wait().exit_code == 0);
}

TEST_CASE("a signal to all tasks at once, servers first, loses no step") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    INFO("signal " << signal);
    const TemporaryFolder folder;
    const TrainCluster cluster(
        2, 2, folder.path(),
        {"--max_steps=1000000", "--issync=1", "--checkpoint_every=1000000", "--display_every=1"});
    std::vector<std::unique_ptr<Process>> tasks;
    for (int i : {0, 1}) tasks.push_back(cluster.start("ps", i));
    for (int i : {0, 1}) tasks.push_back(cluster.start("worker", i));
    Process& chief = *tasks[2];
    REQUIRE(chief.wait_for_output(": step 5, "));
    for (auto& task : tasks) task->signal(signal);
    const ProcessResult saved = chief.wait();
    INFO(saved.err);
    CHECK_FALSE(contains(saved.err, "did not give the variables"));
    // The last step shown, or one more whose answer the signal cut off.
    const auto shown = static_cast<std::int64_t>(losses_of(saved.out).size()) - 1;
    CHECK(latest_step(folder.path()) >= shown);
    CHECK(latest_step(folder.path()) <= shown + 1);
    const int exit_code = signal == SIGUSR1 ? 0 : 128 + signal;
    CHECK(saved.exit_code == exit_code);
    for (std::size_t other : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
      const ProcessResult result = tasks[other]->wait();
      CHECK(result.exit_code == exit_code);
      CHECK_FALSE(result.by_signal);
    }
    CHECK(faults_after_end(folder.path(), 5) == "");
  }
}

TEST_CASE("a chief without servers deletes nothing, and gives up by their names") {
  const TemporaryFolder folder;
  REQUIRE(quick_run(folder.path(), 2).exit_code == 0);
  const TrainCluster cluster(1, 1, folder.path(), {"--cluster_timeout=1", "--overwrite"});
  const ProcessResult alone = cluster.start("worker", 0)->wait();
  CHECK(alone.exit_code == 1);
  CHECK_THAT(alone.err, Contains("gave up after 1 s: " + cluster.ps(0)));
  CHECK(latest_step(folder.path()) == 1);
}
