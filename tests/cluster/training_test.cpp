// Whole trainings: 1 and 2 servers with 1, 2 and 3 workers, in both modes.
#include <catch2/catch.hpp>

#include <cmath>

#include "app/line.h"
#include "data/checkpoint.h"
#include "tests/cluster/processes.h"

using namespace towers;
using namespace towers::test;

namespace {

constexpr int kSteps = 400;
const LinearCluster::Args quick{"--learning_rate=0.02", "--max_steps=" + std::to_string(kSteps),
                                "--seed=5", "--steps_to_validate=100", "--cluster_timeout=60"};

struct Outcome {
  std::int64_t step = 0;
  app::Line line{};
  std::vector<ProcessResult> workers;
};

Outcome train(int servers, int workers, const LinearCluster::Args& more) {
  const TemporaryFolder folder;
  LinearCluster::Args flags = quick;
  flags.insert(flags.end(), more.begin(), more.end());
  const LinearCluster cluster(servers, workers, folder.path(), flags);
  std::vector<std::unique_ptr<Process>> ps, tasks;
  for (int i = 0; i < servers; ++i) ps.push_back(cluster.start("ps", i));
  for (int i = 0; i < workers; ++i) tasks.push_back(cluster.start("worker", i));
  Outcome outcome;
  for (auto& task : tasks) outcome.workers.push_back(task->wait());
  for (auto& server : ps) {
    const ProcessResult result = server->wait();
    INFO(result.err);
    CHECK(result.exit_code == 0);
  }
  for (const ProcessResult& worker : outcome.workers) {
    INFO(worker.err);
    CHECK(worker.exit_code == 0);
  }
  const data::CheckpointReader reader(data::read_checkpoint_state(folder.path()).latest);
  outcome.step = reader.read_integer("global_step");
  reader.read("weight", {&outcome.line[0], 1});
  reader.read("biase", {&outcome.line[1], 1});
  return outcome;
}

// What TensorFlow's SyncReplicasOptimizer computes from the same examples.
app::Line synchronous(int workers, std::uint64_t seed) {
  app::Line line = app::initial_line(seed);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    app::Line mean{};
    for (int worker = 0; worker < workers; ++worker) {
      const auto gradient =
          app::line_gradient(line, app::line_example(seed, worker, step)).gradient;
      for (std::size_t v = 0; v < line.size(); ++v) mean[v] += gradient[v];
    }
    for (std::size_t v = 0; v < line.size(); ++v)
      line[v] -= 0.02f * (mean[v] * (1.0f / static_cast<float>(workers)));
  }
  return line;
}

}  // namespace

TEST_CASE("synchronous: one update for each full set of gradients, on any number of servers") {
  for (int servers : {1, 2})
    for (int workers : {1, 2, 3}) {
      INFO(servers << " servers, " << workers << " workers");
      const Outcome outcome = train(servers, workers, {"--issync=1"});
      const app::Line want = synchronous(workers, 5);
      CHECK(outcome.step == kSteps);
      CHECK(outcome.line[0] == Approx(want[0]).epsilon(1e-5));
      CHECK(outcome.line[1] == Approx(want[1]).epsilon(1e-5));
      for (const ProcessResult& worker : outcome.workers)
        CHECK(contains(worker.out, "step: 300, weight: "));
    }
}

TEST_CASE("asynchronous: each push is an update, on any number of servers") {
  for (int servers : {1, 2})
    for (int workers : {1, 2, 3}) {
      INFO(servers << " servers, " << workers << " workers");
      const Outcome outcome = train(servers, workers, {});
      CHECK(outcome.step >= kSteps);
      CHECK(outcome.step < kSteps + workers);  // pushes under way when the last step was made
      CHECK(outcome.line[0] == Approx(2).margin(0.4));
      CHECK(outcome.line[1] == Approx(10).margin(0.4));
      std::string lines;
      for (const ProcessResult& worker : outcome.workers) lines += worker.out;
      // Of the worker that made it, and of no other.
      CHECK(lines.find("step: 300, ") == lines.rfind("step: 300, "));
      CHECK(contains(lines, "step: 300, weight: "));
    }
}

TEST_CASE("backup workers: training goes on with fewer gradients than workers") {
  const Outcome outcome = train(1, 3, {"--issync=1", "--replicas_to_aggregate=2"});
  CHECK(outcome.step >= kSteps);
  CHECK(outcome.line[1] == Approx(10).margin(0.4));
}

TEST_CASE("alone it makes the same updates as with one worker") {
  const TemporaryFolder folder;
  LinearCluster::Args args{"linear", "--checkpoint_dir=" + folder.path().string()};
  args.insert(args.end(), quick.begin(), quick.end());
  REQUIRE(run_towers(args).exit_code == 0);
  const app::Line want = synchronous(1, 5);
  char line[100];
  std::snprintf(line, sizeof line, "weight: %f, biase: %f\n", static_cast<double>(want[0]),
                static_cast<double>(want[1]));
  const ProcessResult reloaded =
      run_towers({"linear", "--reload", "--checkpoint_dir=" + folder.path().string()});
  CHECK(reloaded.exit_code == 0);
  CHECK(reloaded.out ==
        (folder.path() / "model.ckpt-400").string() + ", global_step = 400\n" + line);
}

TEST_CASE("reload prints nothing on stdout where there is no checkpoint, and says so on stderr") {
  const TemporaryFolder folder;
  const ProcessResult result =
      run_towers({"linear", "--reload", "--checkpoint_dir=" + (folder.path() / "none").string()});
  CHECK(result.exit_code == 0);
  CHECK(result.out.empty());
  CHECK(result.err.find("No checkpoint file found in ") == 0);
}
