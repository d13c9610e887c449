// Whole trainings of the CIFAR-10 net: 1 and 2 servers with 1, 2 and 3 workers, in both modes.
#include <signal.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/cluster/train_cluster.h"

using namespace towers;
using namespace towers::test;
using Catch::Contains;

namespace {

constexpr int kSteps = 7;
const Cluster::Args quick{"--max_steps=" + std::to_string(kSteps), "--checkpoint_every=4",
                          "--display_every=2"};

std::vector<float> variable(const std::filesystem::path& folder, const std::string& name) {
  const data::CheckpointReader reader(data::read_checkpoint_state(folder).latest);
  std::vector<float> values(64);
  reader.read(name, values);
  return values;
}

// Tags, counts and last values of a run's summaries; without the last line, which has the time.
std::string summaries_in(const std::filesystem::path& folder) {
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().filename().string().starts_with("events.out.tfevents.")) {
      const std::string table = run_towers({"inspect", file.path().string()}).out;
      return table.substr(0, table.rfind('\n', table.size() - 2));
    }
  return "";
}

}  // namespace

TEST_CASE("synchronous: the same bytes as one process with as many towers") {
  for (int workers : {1, 2, 3}) {
    const TemporaryFolder alone;
    const ProcessResult single =
        quick_run(alone.path(), kSteps, with(quick, {"--num_gpus=" + std::to_string(workers)}));
    REQUIRE(single.exit_code == 0);
    for (int servers : {1, 2}) {
      INFO(servers << " servers, " << workers << " workers");
      const TemporaryFolder folder;
      const TrainCluster cluster(servers, workers, folder.path(), with(quick, {"--issync=1"}));
      const std::vector<ProcessResult> results = cluster.run();
      for (int step : {0, 4, 6})
        CHECK(checkpoint_bytes(folder.path(), step) == checkpoint_bytes(alone.path(), step));
      for (const ProcessResult& worker : results) {
        CHECK(losses_of(worker.out).size() == 4);
        CHECK_THAT(worker.out, Contains(std::to_string(workers) + ", this is worker ") &&
                                   Contains("synchronous: an update is the mean of "));
      }
      if (workers != 1) continue;
      CHECK(losses_of(results[0].out) == losses_of(single.out));
      CHECK_THAT(summaries_in(folder.path()), Contains("conv1/weights"));
      CHECK(summaries_in(folder.path()) == summaries_in(alone.path()));
    }
  }
}

TEST_CASE("what a cluster has saved, one process evaluates, and goes on with bit for bit") {
  const TemporaryFolder alone, folder;
  REQUIRE(quick_run(alone.path(), kSteps + 3, {"--num_gpus=2"}).exit_code == 0);
  TrainCluster(2, 2, folder.path(), with(quick, {"--issync=1", "--ps_placement=bytes"})).run();
  const ProcessResult evaluated =
      run_towers({"eval", "--dataset=synthetic", "--device=cpu", "--run_once", "--num_examples=100",
                  "--checkpoint_dir=" + folder.path().string(),
                  "--eval_dir=" + (folder.path() / "eval").string()});
  INFO(evaluated.err);
  CHECK(evaluated.exit_code == 0);
  CHECK_THAT(evaluated.out, Contains("precision @ 1 = "));
  const ProcessResult resumed = quick_run(folder.path(), kSteps + 3, {"--num_gpus=2", "--resume"});
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK(checkpoint_bytes(folder.path(), kSteps + 2) == checkpoint_bytes(alone.path(), kSteps + 2));
}

TEST_CASE("a restart may have other numbers of workers and servers, and makes their bytes") {
  const TemporaryFolder alone, folder;
  REQUIRE(quick_run(alone.path(), kSteps, {"--num_gpus=2"}).exit_code == 0);
  REQUIRE(quick_run(alone.path(), kSteps + 3, {"--num_gpus=3", "--resume"}).exit_code == 0);
  TrainCluster(1, 2, folder.path(), with(quick, {"--issync=1"})).run();
  TrainCluster(2, 3, folder.path(),
               with(quick, {"--issync=1", "--max_steps=" + std::to_string(kSteps + 3)}))
      .run();
  CHECK(checkpoint_bytes(folder.path(), kSteps + 2) == checkpoint_bytes(alone.path(), kSteps + 2));
}

TEST_CASE("asynchronous: each push is an update, and every worker shows steps of its own") {
  for (int servers : {1, 2})
    for (int workers : {1, 2, 3}) {
      INFO(servers << " servers, " << workers << " workers");
      const TemporaryFolder folder;
      const TrainCluster cluster(servers, workers, folder.path(),
                                 {"--max_steps=20", "--display_every=1"});
      std::size_t lines = 0;
      for (const ProcessResult& worker : cluster.run()) lines += losses_of(worker.out).size();
      const std::int64_t step = latest_step(folder.path());
      CHECK(step >= 19);
      CHECK(step < 19 + workers);  // pushes under way when the last step was made
      CHECK(lines >= 20);          // each update is shown by the worker that made it
      CHECK(lines < static_cast<std::size_t>(20 + workers));
      for (float value : variable(folder.path(), "conv1/biases/ExponentialMovingAverage"))
        CHECK(std::isfinite(value));
    }
}

TEST_CASE("one asynchronous worker makes the bytes of one process") {
  const TemporaryFolder alone, folder;
  REQUIRE(quick_run(alone.path(), kSteps).exit_code == 0);
  TrainCluster(1, 1, folder.path(), quick).run();
  CHECK(checkpoint_bytes(folder.path(), 6) == checkpoint_bytes(alone.path(), 6));
}

TEST_CASE("with --push_precision=bf16 gradients keep eight significant bits") {
  const TemporaryFolder fp32, bf16;
  // One step from zero: the biases are the gradient times the learning rate.
  TrainCluster(1, 1, fp32.path(), {"--max_steps=1"}).run();
  TrainCluster(1, 1, bf16.path(), {"--max_steps=1", "--push_precision=bf16"}).run();
  const std::vector<float> exact = variable(fp32.path(), "conv1/biases");
  const std::vector<float> rounded = variable(bf16.path(), "conv1/biases");
  CHECK(rounded != exact);
  for (std::size_t i = 0; i < exact.size(); ++i)
    CHECK(rounded[i] == Approx(exact[i]).epsilon(1.0 / 256));
}

TEST_CASE("with --pull_precision=bf16 workers see eight significant bits, and servers keep all") {
  const Cluster::Args flags = with(quick, {"--issync=1", "--pull_precision=bf16"});
  const TemporaryFolder fp32, bf16, often;
  TrainCluster(1, 2, fp32.path(), with(quick, {"--issync=1"})).run();
  TrainCluster(1, 2, bf16.path(), flags).run();
  TrainCluster(1, 2, often.path(), with(flags, {"--checkpoint_every=1"})).run();
  const std::vector<float> exact = variable(fp32.path(), "conv1/biases");
  const std::vector<float> rounded = variable(bf16.path(), "conv1/biases");
  CHECK(rounded != exact);
  for (std::size_t i = 0; i < exact.size(); ++i) CHECK(rounded[i] == Approx(exact[i]).margin(0.02));
  CHECK(std::any_of(rounded.begin(), rounded.end(),
                    [](float value) { return (std::bit_cast<std::uint32_t>(value) << 16) != 0; }));
  // What the chief saves comes exact, and it computes from what the others have all the same.
  CHECK(checkpoint_bytes(often.path(), 6) == checkpoint_bytes(bf16.path(), 6));
}

TEST_CASE("backup workers: late gradients are dropped and counted") {
  const TemporaryFolder folder;
  const TrainCluster cluster(1, 3, folder.path(),
                             {"--max_steps=30", "--issync=1", "--replicas_to_aggregate=1"});
  std::string told;
  for (const ProcessResult& worker : cluster.run()) told += worker.err;
  CHECK(latest_step(folder.path()) >= 29);
  CHECK_THAT(told, Contains(" gradients came too late and were dropped"));
}

TEST_CASE("only the chief needs a folder") {
  const TemporaryFolder folder;
  const TrainCluster cluster(1, 2, folder.path(), with(quick, {"--issync=1"}));
  auto ps = cluster.start("ps", 0, {"--train_dir=/proc/none"});
  auto chief = cluster.start("worker", 0);
  auto worker = cluster.start("worker", 1, {"--train_dir=/proc/none"});
  for (Process* task : {worker.get(), chief.get(), ps.get()}) {
    const ProcessResult result = task->wait();
    INFO(result.err);
    CHECK(result.exit_code == 0);
  }
  CHECK(latest_step(folder.path()) == 6);
}

TEST_CASE("workers with unequal flags: an error that names the flag") {
  const TemporaryFolder folder;
  const TrainCluster cluster(1, 2, folder.path(), with(quick, {"--issync=1"}));
  auto ps = cluster.start("ps", 0);
  auto chief = cluster.start("worker", 0);
  REQUIRE(ps->wait_for_output(cluster.worker(0) + " has come"));
  for (const auto& [flag, message] :
       {std::pair{"--batch_size=16", "--batch_size differs: '16' here, '8' at "},
        {"--num_gpus=2", "--num_gpus differs: '2' here, '1' at "},
        {"--learning_rate=0.2", "--learning_rate differs: '0.2' here, '0.1' at "},
        {"--convolution=direct", "--convolution differs: 'direct' here, 'auto' at "},
        {"--pull_precision=bf16", "--pull_precision differs: 'bf16' here, 'fp32' at "},
        {"--ps_placement=bytes", "--ps_placement differs: 'bytes' here, 'round_robin' at "}}) {
    const ProcessResult refused = cluster.start("worker", 1, {flag})->wait();
    CHECK(refused.exit_code == 1);
    CHECK_THAT(refused.err, Contains(message + cluster.worker(0)));
  }
  auto worker = cluster.start("worker", 1);
  for (Process* task : {worker.get(), chief.get(), ps.get()}) CHECK(task->wait().exit_code == 0);
}

TEST_CASE("what a worker does not do is refused") {
  const TemporaryFolder folder;
  const TrainCluster cluster(1, 1, folder.path(), quick);
  for (const char* flag : {"--precision=fp16", "--progress", "--trace_file=/tmp/none/trace.json"}) {
    const ProcessResult refused = cluster.start("worker", 0, {flag})->wait();
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, Contains(std::string(flag).substr(0, std::string(flag).find('='))));
  }
}

TEST_CASE("with --eval_every the chief keeps the best checkpoint") {
  const TemporaryFolder folder;
  std::string out;
  for (const ProcessResult& result :
       TrainCluster(1, 1, folder.path(), with(quick, {"--eval_every=4"})).run())
    out += result.out;
  CHECK(latest_step(folder.path() / "best") >= 4);
  const std::size_t first = out.find(": precision @ 1 = ");
  CHECK(first != std::string::npos);
  CHECK(out.find(": precision @ 1 = ", first + 1) != std::string::npos);  // after the last step
}

TEST_CASE("a worker with another seed than the chief's: an error that names both") {
  const TemporaryFolder folder;
  const TrainCluster cluster(1, 2, folder.path(), {"--max_steps=1000000"});
  auto ps = cluster.start("ps", 0);
  auto chief = cluster.start("worker", 0);
  const ProcessResult other = cluster.start("worker", 1, {"--seed=8"})->wait();
  CHECK(other.exit_code == 1);
  CHECK_THAT(other.err, Contains("--seed differs: '8' here, '7' at " + cluster.worker(0)));
  chief->signal(SIGTERM);
  CHECK(chief->wait().exit_code == 143);
  CHECK(ps->wait().exit_code == 0);
}
