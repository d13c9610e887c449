// Who is missing, who dies and who comes back.
#include <catch2/catch.hpp>

#include <signal.h>

#include <chrono>
#include <random>
#include <thread>

#include "cluster/wire.h"
#include "data/checkpoint.h"
#include "tests/cluster/processes.h"
#include "tests/cluster/stub.h"

using namespace towers;
using namespace towers::test;
using Catch::Contains;

namespace {

// Long enough to be interrupted; ended by signals or by a restart with fewer steps.
const LinearCluster::Args endless{"--learning_rate=0.001",     "--max_steps=2000000000",
                                  "--steps_to_validate=50000", "--save_model_secs=0.1",
                                  "--worker_timeout=1",        "--cluster_timeout=60"};

void end_all(std::initializer_list<Process*> workers) {
  for (Process* worker : workers) worker->signal(SIGTERM);
  for (Process* worker : workers) CHECK(worker->wait().exit_code == 143);
}

// Two servers and two workers, past their first steps; worker 1 is to be lost.
struct Synchronous {
  Synchronous() { REQUIRE(checkpoint_came_after(folder.path(), 10)); }

  void kill(std::initializer_list<Process*> tasks) const {
    for (Process* task : tasks) task->signal(SIGKILL);
    for (Process* task : tasks) task->wait();  // a server has its port until then
  }
  // Without worker 1, and then with it.
  void check_goes_on() {
    REQUIRE(checkpoint_came_after(folder.path(), latest_step(folder.path()) + 10));
    auto again = cluster.start("worker", 1, {"--steps_to_validate=10"});
    REQUIRE(again->wait_for_output("step: "));
    end_all({again.get(), chief.get()});
    CHECK(ps0->wait().exit_code == 0);
    CHECK(ps1->wait().exit_code == 0);
  }

  const TemporaryFolder folder;
  const LinearCluster cluster{2, 2, folder.path(), with(endless, {"--issync=1"})};
  std::unique_ptr<Process> ps0 = cluster.start("ps", 0), ps1 = cluster.start("ps", 1),
                           chief = cluster.start("worker", 0), worker = cluster.start("worker", 1);
  const std::string lost = cluster.worker(1) + " is lost";
};

}  // namespace

TEST_CASE("a server that is told to end stays for a chief that says it comes once more") {
  namespace wire = towers::cluster::wire;
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), {"--worker_timeout=30"});
  auto ps = cluster.start("ps", 0);
  REQUIRE(ps->wait_for_output("is serving"));
  const auto stub = stub_of(cluster.ps_address(0));

  wire::Request hello;
  hello.set_kind(wire::Request::HELLO);
  hello.set_version(towers::cluster::kProtocolVersion);
  hello.mutable_presence()->set_process(7);
  hello.set_size(2);
  for (const std::string& flag : cluster.args("worker", 0))
    if (flag.rfind("--ps_hosts=", 0) == 0 || flag.rfind("--worker_hosts=", 0) == 0) {
      wire::Setting* setting = hello.add_settings();
      setting->set_name(flag.substr(0, flag.find('=')));
      setting->set_value(flag.substr(flag.find('=') + 1));
    }
  grpc::ClientContext context;
  auto stream = stub->Train(&context);
  wire::Reply reply;
  REQUIRE((stream->Write(hello) && stream->Read(&reply)));
  REQUIRE(reply.kind() == wire::Reply::STATE);

  const auto beat = [&](bool comes_once_more) {
    grpc::ClientContext call;
    wire::Presence sign = hello.presence();
    sign.set_comes_once_more(comes_once_more);
    wire::Pulse pulse;
    return stub->Beat(&call, sign, &pulse).ok();
  };
  REQUIRE(beat(true));
  ps->signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::seconds(3));  // twice what it has for others
  CHECK(beat(false));
  context.TryCancel();
  stream->Finish();
  grpc::ClientContext call;
  wire::Pulse pulse;
  CHECK(stub->Goodbye(&call, hello.presence(), &pulse).ok());
  CHECK(ps->wait().exit_code == 143);
}

TEST_CASE("any order of start: who waits says for whom and why") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 2, folder.path(), {"--max_steps=50", "--issync=1"});
  auto worker = cluster.start("worker", 1);
  REQUIRE(worker->wait_for_output(cluster.worker(1) + " waits for " + cluster.ps(0) +
                                  ": Connection refused"));
  auto ps = cluster.start("ps", 0);
  REQUIRE(ps->wait_for_output("waits for " + cluster.worker(0) + ": has not come yet"));
  auto chief = cluster.start("worker", 0);
  CHECK(chief->wait().exit_code == 0);
  CHECK(worker->wait().exit_code == 0);
  CHECK(ps->wait().exit_code == 0);
}

TEST_CASE("whoever is missing for cluster_timeout is named, with exit code 1") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 2, folder.path(), {"--cluster_timeout=1", "--issync=1"});
  const ProcessResult alone = cluster.start("worker", 0)->wait();
  CHECK(alone.exit_code == 1);
  CHECK_THAT(alone.err, Contains("gave up after 1 s: " + cluster.ps(0) + ": Connection refused"));
  auto ps = cluster.start("ps", 0);
  auto chief = cluster.start("worker", 0);  // synchronous, so it needs the other one
  const ProcessResult without_other = chief->wait();
  CHECK(without_other.exit_code == 1);
  CHECK_THAT(without_other.err, Contains(cluster.worker(1) + " has not come yet"));
  end_all({ps.get()});  // it would stay some seconds for the late one
  const ProcessResult nobody = cluster.start("ps", 0)->wait();
  CHECK(nobody.exit_code == 1);
  CHECK_THAT(nobody.err, Contains("gave up waiting for " + cluster.worker(0)));
}

TEST_CASE("SIGTERM ends a server and a worker that waits, and one with --ps_keep_serving") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), {"--max_steps=20"});
  auto waiting = cluster.start("worker", 0);
  REQUIRE(waiting->wait_for_output("waits for"));
  end_all({waiting.get()});
  auto ps = cluster.start("ps", 0, {"--ps_keep_serving"});
  CHECK(cluster.start("worker", 0)->wait().exit_code == 0);
  end_all({ps.get()});
}

TEST_CASE("a kept server serves one training after the other, each in any order of start") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 2, folder.path(), {"--issync=1"});
  auto ps = cluster.start("ps", 0, {"--ps_keep_serving"});
  for (const char* steps : {"--max_steps=20", "--max_steps=40"}) {
    auto worker = cluster.start("worker", 1, {steps});
    // The former chief's flags are none of its business.
    REQUIRE(worker->wait_for_output("waits for " + cluster.worker(0) + ": has not come yet"));
    auto chief = cluster.start("worker", 0, {steps});
    for (Process* task : {worker.get(), chief.get()}) {
      const ProcessResult result = task->wait();
      INFO(result.err);
      CHECK(result.exit_code == 0);
    }
    REQUIRE(ps->wait_for_output("the training is over; ready for the next"));
  }
  CHECK(latest_step(folder.path()) == 40);
  end_all({ps.get()});
}

TEST_CASE("a worker that comes after the end leaves cleanly") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 2, folder.path(), {"--max_steps=20", "--steps_to_validate=1"});
  auto ps = cluster.start("ps", 0);
  CHECK(cluster.start("worker", 0)->wait().exit_code == 0);
  const ProcessResult late = cluster.start("worker", 1)->wait();
  CHECK(late.exit_code == 0);
  CHECK(late.out.empty());
  CHECK(ps->wait().exit_code == 0);
}

TEST_CASE("synchronous training goes on without a lost worker, and takes it back") {
  Synchronous run;
  run.kill({run.worker.get()});
  REQUIRE(run.ps0->wait_for_output(run.lost));
  run.check_goes_on();
}

TEST_CASE("synchronous training goes on without a worker that is lost together with a server") {
  Synchronous run;
  SECTION("one server") {
    run.kill({run.worker.get(), run.ps1.get()});
  }
  SECTION("all servers: the chief knows") {
    run.kill({run.worker.get(), run.ps0.get(), run.ps1.get()});
    run.ps0 = run.cluster.start("ps", 0);
  }
  SECTION("the chief and a server: the other server knows") {
    run.kill({run.worker.get(), run.chief.get(), run.ps1.get()});
    run.chief = run.cluster.start("worker", 0);
  }
  run.ps1 = run.cluster.start("ps", 1);
  REQUIRE(run.ps1->wait_for_output(run.lost));
  run.check_goes_on();
}

TEST_CASE("with --stop_on_lost_worker a lost worker ends the training and is named") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 2, folder.path(),
                              with(endless, {"--issync=1", "--stop_on_lost_worker"}));
  auto ps = cluster.start("ps", 0);
  auto chief = cluster.start("worker", 0), worker = cluster.start("worker", 1);
  REQUIRE(checkpoint_came_after(folder.path(), 10));
  worker->signal(SIGKILL);
  for (Process* task : {chief.get(), ps.get()}) {
    const ProcessResult result = task->wait();
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains(cluster.worker(1) + " is lost"));
  }
}

TEST_CASE("a worker lost without goodbye keeps the servers until cluster_timeout") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), with(endless, {"--cluster_timeout=3"}));
  auto ps = cluster.start("ps", 0);
  auto chief = cluster.start("worker", 0);
  REQUIRE(checkpoint_came_after(folder.path(), 10));
  chief->signal(SIGKILL);
  const ProcessResult result = ps->wait();
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Contains("gave up waiting for " + cluster.worker(0) + " after 3 s"));
}

TEST_CASE("kill -9 of the chief, a worker or a server: a restart goes on from the checkpoint") {
  const int rounds = number_from("TOWERS_KILL_ROUNDS", 4);
  std::mt19937 random(std::random_device{}());
  const TemporaryFolder folder;
  for (const char* mode : {"--issync=0", "--issync=1"}) {
    const LinearCluster cluster(2, 2, folder.path(), with(endless, {mode}));
    const std::vector<std::pair<std::string, int>> tasks{
        {"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}};
    std::vector<std::unique_ptr<Process>> running;
    for (const auto& [job, index] : tasks) running.push_back(cluster.start(job, index));
    for (std::size_t worker : {std::size_t{2}, std::size_t{3}})
      REQUIRE(running[worker]->wait_for_output("takes part from step"));
    for (int round = 0; round < rounds; ++round) {
      const std::size_t victim = rounds < 10 ? static_cast<std::size_t>(round) % 4 : random() % 4;
      INFO(mode << ", round " << round << ": " << tasks[victim].first << tasks[victim].second);
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
      running[victim]->signal(SIGKILL);
      running[victim]->wait();
      const std::int64_t before = latest_step(folder.path());
      running[victim] = cluster.start(tasks[victim].first, tasks[victim].second);
      const bool again =
          tasks[victim].first == "ps" || running[victim]->wait_for_output("takes part from step");
      if (again && checkpoint_came_after(folder.path(), before)) continue;
      for (auto& task : running) {
        task->signal(SIGTERM);
        UNSCOPED_INFO(task->wait().err);
      }
      FAIL("no checkpoint came");
    }
    end_all({running[2].get(), running[3].get()});
    for (int server : {0, 1})
      CHECK(running[static_cast<std::size_t>(server)]->wait().exit_code == 0);
    const data::CheckpointReader reader(data::read_checkpoint_state(folder.path()).latest);
    CHECK(reader.read_integer("global_step") == latest_step(folder.path()));
  }
}

TEST_CASE("a server that dies and stays away: the workers wait, and end with its name") {
  const TemporaryFolder folder;
  const LinearCluster cluster(2, 2, folder.path(), with(endless, {"--cluster_timeout=2"}));
  auto ps0 = cluster.start("ps", 0), ps1 = cluster.start("ps", 1);
  auto chief = cluster.start("worker", 0), worker = cluster.start("worker", 1);
  REQUIRE(checkpoint_came_after(folder.path(), 10));
  ps1->signal(SIGKILL);
  for (Process* task : {chief.get(), worker.get()}) {
    const ProcessResult result = task->wait();
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, Contains("gave up after 2 s: " + cluster.ps(1) + ": "));
  }
  CHECK(ps0->wait().exit_code == 0);
  const data::CheckpointReader reader(data::read_checkpoint_state(folder.path()).latest);
  CHECK(reader.read_integer("global_step") == latest_step(folder.path()));
}

TEST_CASE("a restart may have other numbers of workers and servers") {
  const TemporaryFolder folder;
  std::int64_t step = 0;
  for (const auto& [servers, workers] : {std::pair{2, 2}, {1, 3}}) {
    step += 200;
    const LinearCluster cluster(servers, workers, folder.path(),
                                {"--issync=1", "--max_steps=" + std::to_string(step)});
    std::vector<std::unique_ptr<Process>> tasks;
    for (int i = 0; i < servers; ++i) tasks.push_back(cluster.start("ps", i));
    for (int i = 0; i < workers; ++i) tasks.push_back(cluster.start("worker", i));
    for (auto& task : tasks) CHECK(task->wait().exit_code == 0);
    CHECK(latest_step(folder.path()) == step);
  }
}
