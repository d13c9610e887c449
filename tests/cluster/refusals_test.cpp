// Command lines and tasks that do not fit together.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/cluster/processes.h"
#include "tests/cluster/sockets.h"

using namespace towers::test;
using Catch::Contains;

namespace {

void check_refused(const ProcessResult& result, int exit_code, const std::string& message) {
  CHECK(result.exit_code == exit_code);
  CHECK_THAT(result.err, Contains(message));
  CHECK_THAT(result.err, Contains("towers: error: "));
}

}  // namespace

TEST_CASE("a command line that names no task is a usage error") {
  const std::string ps = "--ps_hosts=localhost:2222", workers = "--worker_hosts=localhost:2223";
  const auto linear = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args{"linear"};
    args.insert(args.end(), more.begin(), more.end());
    return run_towers(args);
  };
  check_refused(linear({ps, workers, "--job_name=chief"}), 2, "it is ps or worker");
  check_refused(linear({ps, workers}), 2, "--job_name is missing");
  check_refused(linear({ps, workers, "--job_name=worker", "--task_index=1"}), 2, "so it is 0");
  check_refused(linear({workers, "--job_name=worker"}), 2, "--ps_hosts is empty");
  check_refused(linear({ps, "--job_name=worker"}), 2, "--worker_hosts is empty");
  check_refused(linear({ps, "--worker_hosts=localhost:2222", "--job_name=ps"}), 2, "occurs twice");
  check_refused(linear({ps, workers, "--job_name=worker", "--replicas_to_aggregate=2"}), 2,
                "--worker_hosts has 1");
  check_refused(linear({ps, workers, "--job_name=worker", "--replicas_to_aggregate=1"}), 2,
                "give --issync=1 too");
}

TEST_CASE("flags of a cluster without its addresses are a usage error, not passed over") {
  for (const std::string& flag :
       {std::string("--issync=1"), std::string("--replicas_to_aggregate=2"),
        std::string("--task_index=1"), std::string("--push_precision=bf16"),
        std::string("--cluster_token_file=/none"), std::string("--ps_keep_serving")})
    for (const char* command : {"linear", "train"}) {
      const TemporaryFolder folder;
      const std::string dir = (folder.path() / "run").string();
      const ProcessResult refused = std::string(command) == "linear"
                                        ? run_towers({"linear", "--checkpoint_dir=" + dir, flag})
                                        : run_towers(quick_args(dir, 2, {flag}));
      check_refused(refused, 2, flag);
      CHECK_THAT(refused.err, Contains("give --ps_hosts, --worker_hosts, --job_name"));
      CHECK_FALSE(std::filesystem::exists(dir));
    }
  const TemporaryFolder folder;  // the default is no request
  CHECK(quick_run(folder.path(), 1, {"--issync=0", "--task_index=0"}).exit_code == 0);
}

TEST_CASE("a port in use is an error that names it") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), {});
  auto first = cluster.start("ps", 0);
  REQUIRE(first->wait_for_output("is serving"));
  const ProcessResult second = cluster.start("ps", 0)->wait();
  check_refused(second, 1, cluster.ps(0) + " cannot listen on its address: Address already in use");
  CHECK(std::count(second.err.begin(), second.err.end(), '\n') == 1);
}

TEST_CASE("two entries of --ps_hosts that lead to one server are an error, not wrong variables") {
  const TemporaryFolder folder;
  const std::string port = ":" + std::to_string(free_ports(1).front());
  const auto task = [&](const char* job, const char* index) {
    return std::vector<std::string>{"linear",
                                    "--ps_hosts=127.0.0.1" + port + ",localhost" + port,
                                    "--worker_hosts=localhost:1",
                                    std::string("--job_name=") + job,
                                    std::string("--task_index=") + index,
                                    "--max_steps=10",
                                    "--checkpoint_dir=" + folder.path().string()};
  };
  Process ps(task("ps", "0"));
  REQUIRE(ps.wait_for_output("is serving"));
  check_refused(run_towers(task("ps", "1")), 1, "Address already in use; end what uses it");
  check_refused(run_towers(task("worker", "0")), 1, "two entries of --ps_hosts are one address");
}

TEST_CASE("a port that another program has: the worker says so") {
  for (const auto& [greeting, message] :
       {std::pair{"SSH-2.0-OpenSSH_9.2\r\n", "another program answers there, no parameter server"},
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "another program answers there"},
        {"", "takes the connection, but says nothing"}}) {
    const TemporaryFolder folder;
    const LinearCluster cluster(1, 1, folder.path(), {"--cluster_timeout=1"});
    const Stranger stranger(port_of(cluster.ps_address(0)), greeting);
    check_refused(cluster.start("worker", 0)->wait(), 1, cluster.ps(0) + ": " + message);
  }
}

TEST_CASE("a server says why it cannot listen, and what helps") {
  const auto serve = [](const std::string& address, const ProcessOptions& options = {}) {
    return run_towers({"linear", "--ps_hosts=" + address, "--worker_hosts=a:1", "--job_name=ps"},
                      options);
  };
  check_refused(serve("192.0.2.1:2222"), 1, "start this task on the machine that has it");
  check_refused(serve("nobody.invalid:2222"), 1, "correct the host's name in --ps_hosts");
}

TEST_CASE("tasks with unequal flags: an error that names the flag") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 3, folder.path(), {"--max_steps=200", "--issync=1"});
  auto ps = cluster.start("ps", 0);
  auto chief = cluster.start("worker", 0);
  REQUIRE(ps->wait_for_output(cluster.worker(0) + " has come"));
  check_refused(cluster.start("worker", 1, {"--learning_rate=0.5"})->wait(), 1,
                "--learning_rate differs: '0.5' here, '3e-05' at " + cluster.worker(0));
  check_refused(cluster.start("worker", 1, {"--issync=0"})->wait(), 1, "--issync differs");
  const LinearCluster other(1, 3, folder.path(), {});
  auto stranger = cluster.args("worker", 1);
  std::string& workers = stranger[2];
  REQUIRE(workers.starts_with("--worker_hosts="));
  workers += ",127.0.0.1:9";
  check_refused(run_towers(stranger), 1, "--worker_hosts differs");
  auto another_model = cluster.args("worker", 1);
  another_model.resize(5);  // up to --task_index
  another_model.front() = "train";
  check_refused(run_towers(with(another_model, {"--dataset=synthetic", "--device=cpu"})), 1,
                "model differs: 'cifar10' here, 'linear' at " + cluster.worker(0));
  auto first = cluster.start("worker", 1), second = cluster.start("worker", 2);
  for (Process* task : {first.get(), second.get(), chief.get(), ps.get()})
    CHECK(task->wait().exit_code == 0);
}

TEST_CASE("two processes with one task_index: the second is refused") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 2, folder.path(), {"--issync=1", "--worker_timeout=1"});
  auto ps = cluster.start("ps", 0);
  auto first = cluster.start("worker", 1);
  REQUIRE(ps->wait_for_output(cluster.worker(1) + " has come"));
  check_refused(cluster.start("worker", 1)->wait(), 1, "another process is " + cluster.worker(1));
}
