// Who dies, comes back, or is told to end, in a training of the CIFAR-10 net.
#include <signal.h>

#include "tests/cluster/train_cluster.h"

using namespace towers;
using namespace towers::test;
using Catch::Contains;

namespace {

// Ended by signals.
const Cluster::Args endless{"--max_steps=1000000", "--checkpoint_every=1", "--max_to_keep=3",
                            "--worker_timeout=1"};

}  // namespace

TEST_CASE("kill -9 of a worker, the chief or a server: a restart goes on from the checkpoint") {
  for (const char* mode : {"--issync=0", "--issync=1"}) {
    const TemporaryFolder folder;
    const TrainCluster cluster(2, 2, folder.path(), with(endless, {mode}));
    const std::vector<std::pair<std::string, int>> tasks{
        {"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}};
    std::vector<std::unique_ptr<Process>> running;
    for (const auto& [job, index] : tasks) running.push_back(cluster.start(job, index));
    REQUIRE(checkpoint_came_after(folder.path(), 1));
    for (std::size_t victim : {std::size_t{3}, std::size_t{2}, std::size_t{0}}) {
      INFO(mode << ": " << tasks[victim].first << tasks[victim].second);
      running[victim]->signal(SIGKILL);
      running[victim]->wait();
      const std::int64_t before = latest_step(folder.path());
      running[victim] = cluster.start(tasks[victim].first, tasks[victim].second);
      const bool joined =
          tasks[victim].first == "ps" || running[victim]->wait_for_output("takes part from step");
      if (joined && checkpoint_came_after(folder.path(), before)) continue;
      for (auto& task : running) {
        task->signal(SIGTERM);
        UNSCOPED_INFO(task->wait().err);
      }
      FAIL("no checkpoint came");
    }
    for (std::size_t worker : {std::size_t{3}, std::size_t{2}}) {
      running[worker]->signal(SIGTERM);
      const ProcessResult result = running[worker]->wait();
      INFO(result.err);
      CHECK(result.exit_code == 143);
    }
    for (std::size_t server : {std::size_t{0}, std::size_t{1}})
      CHECK(running[server]->wait().exit_code == 0);
    const data::CheckpointReader reader(data::read_checkpoint_state(folder.path()).latest);
    float global_step = 0;
    reader.read("global_step", {&global_step, 1});
    CHECK(static_cast<std::int64_t>(global_step) == latest_step(folder.path()) + 1);
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

TEST_CASE("a chief without servers deletes nothing, and gives up by their names") {
  const TemporaryFolder folder;
  REQUIRE(quick_run(folder.path(), 2).exit_code == 0);
  const TrainCluster cluster(1, 1, folder.path(), {"--cluster_timeout=1", "--overwrite"});
  const ProcessResult alone = cluster.start("worker", 0)->wait();
  CHECK(alone.exit_code == 1);
  CHECK_THAT(alone.err, Contains("gave up after 1 s: " + cluster.ps(0)));
  CHECK(latest_step(folder.path()) == 1);
}
