// A training across network namespaces: addresses that are not the loopback's, and a cut cable.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/cluster/train_cluster.h"

using namespace towers;
using namespace towers::test;
using Catch::Contains;

namespace {

bool done(const std::string& command) {
  return std::system((command + " 2>/dev/null").c_str()) == 0;
}

// Two hosts, 10.77.N.1 and 10.77.N.2, with a cable between.
class TwoHosts {
 public:
  TwoHosts() {
    good_ =
        done("ip netns add " + space(0)) && done("ip netns add " + space(1)) &&
        done("ip -n " + space(0) + " link add cable type veth peer name cable netns " + space(1));
    for (int i : {0, 1})
      good_ = good_ && done("ip -n " + space(i) + " addr add " + host(i) + "/24 dev cable") &&
              done("ip -n " + space(i) + " link set cable up") &&
              done("ip -n " + space(i) + " link set lo up");
  }
  ~TwoHosts() {
    for (int i : {0, 1}) (void)done("ip netns del " + space(i));
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  bool good() const { return good_; }
  static std::string host(int i) { return "10.77." + number() + "." + std::to_string(1 + i); }
  static void cut() { (void)done("ip -n " + space(1) + " link set cable down"); }

  // A process inherits the namespace of the thread that starts it.
  static std::unique_ptr<Process> start(int host, const Cluster::Args& args) {
    const int own = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    const int other = ::open(("/var/run/netns/" + space(host)).c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(::setns(other, CLONE_NEWNET) == 0);
    auto process = std::make_unique<Process>(args);
    REQUIRE(::setns(own, CLONE_NEWNET) == 0);
    ::close(own);
    ::close(other);
    return process;
  }

 private:
  static std::string number() { return std::to_string(::getpid() % 250); }
  static std::string space(int i) { return "towers-test-" + number() + "-" + std::to_string(i); }

  bool good_ = false;
};

}  // namespace

TEST_CASE("across network namespaces: the same bytes, and a cut cable is a lost worker") {
  const TwoHosts hosts;
  if (!hosts.good()) return skip("ip netns and veth need root and CAP_SYS_ADMIN");
  const TemporaryFolder alone, folder;
  REQUIRE(quick_run(alone.path(), 5, {"--num_gpus=2"}).exit_code == 0);
  const auto args = [&](const std::string& job, int index, const std::string& steps) {
    return Cluster::Args{
        "train",
        "--dataset=synthetic",
        "--device=cpu",
        "--batch_size=8",
        "--seed=7",
        "--compute_threads=1",
        "--issync=1",
        "--worker_timeout=2",
        "--cluster_timeout=60",
        "--checkpoint_every=1",
        "--train_dir=" + folder.path().string(),
        "--ps_hosts=" + TwoHosts::host(0) + ":2222",
        "--worker_hosts=" + TwoHosts::host(0) + ":2223," + TwoHosts::host(1) + ":2223",
        "--job_name=" + job,
        "--task_index=" + std::to_string(index),
        "--max_steps=" + steps};
  };
  for (const char* steps : {"5", "1000000"}) {
    auto ps = TwoHosts::start(0, args("ps", 0, steps));
    auto chief = TwoHosts::start(0, args("worker", 0, steps));
    auto worker = TwoHosts::start(1, args("worker", 1, steps));
    if (std::string(steps) == "5") {
      for (Process* task : {worker.get(), chief.get()}) CHECK(task->wait().exit_code == 0);
      const ProcessResult served = ps->wait();
      CHECK(served.exit_code == 0);
      CHECK_THAT(served.err, Contains("whoever reaches " + TwoHosts::host(0) + ":2222"));
      CHECK(checkpoint_bytes(folder.path(), 4) == checkpoint_bytes(alone.path(), 4));
      continue;
    }
    REQUIRE(worker->wait_for_output("takes part from step 5"));
    TwoHosts::cut();
    REQUIRE(ps->wait_for_output("worker 1 (" + TwoHosts::host(1) + ":2223) is lost"));
    const std::int64_t before = latest_step(folder.path());
    REQUIRE(checkpoint_came_after(folder.path(), before));
    for (Process* task : {worker.get(), chief.get()}) {
      task->signal(SIGTERM);
      CHECK(task->wait().exit_code == 143);
    }
    ps->signal(SIGTERM);  // it would wait for the lost one
    CHECK(ps->wait().exit_code == 143);
  }
}
