#pragma once
// Parameter servers and workers as processes on the loopback.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "data/checkpoint.h"
#include "tests/app/quick_run.h"
#include "tests/support.h"

namespace towers::test {

// Ports that were free a moment ago, each another one.
inline std::vector<int> free_ports(int count) {
  std::vector<int> sockets, ports;
  for (int i = 0; i < count; ++i) {
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(probe, any, size) != 0 || ::getsockname(probe, any, &size) != 0)
      throw std::runtime_error("no free port");
    sockets.push_back(probe);
    ports.push_back(ntohs(address.sin_port));
  }
  for (int probe : sockets) ::close(probe);
  return ports;
}

// Addresses of its own, and the command lines of its tasks.
class Cluster {
 public:
  using Args = std::vector<std::string>;

  // command: with its folder, of every task; flags: what else they all get; host: of all addresses.
  Cluster(int servers, int workers, Args command, const Args& flags,
          const std::string& host = "127.0.0.1")
      : command_(std::move(command)) {
    command_.insert(command_.end(), flags.begin(), flags.end());
    const std::vector<int> ports = free_ports(servers + workers);
    for (int i = 0; i < servers + workers; ++i)
      (i < servers ? ps_hosts_ : worker_hosts_)
          .push_back(host + ":" + std::to_string(ports[static_cast<std::size_t>(i)]));
  }

  Args args(const std::string& job, int index, const Args& more = {}) const {
    Args all{command_.front(), "--ps_hosts=" + joined(ps_hosts_),
             "--worker_hosts=" + joined(worker_hosts_), "--job_name=" + job,
             "--task_index=" + std::to_string(index)};
    all.insert(all.end(), command_.begin() + 1, command_.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::unique_ptr<Process> start(const std::string& job, int index, const Args& more = {},
                                 const ProcessOptions& options = {}) const {
    return std::make_unique<Process>(args(job, index, more), options);
  }
  const std::string& ps_address(std::size_t index) const { return ps_hosts_[index]; }
  std::string ps(std::size_t index) const {
    return "ps " + std::to_string(index) + " (" + ps_hosts_[index] + ")";
  }
  std::string worker(std::size_t index) const {
    return "worker " + std::to_string(index) + " (" + worker_hosts_[index] + ")";
  }

 private:
  static std::string joined(const Args& list) {
    std::string text;
    for (const std::string& item : list) text += (text.empty() ? "" : ",") + item;
    return text;
  }

  Args command_, ps_hosts_, worker_hosts_;
};

// The chief saves to `folder`.
class LinearCluster : public Cluster {
 public:
  LinearCluster(int servers, int workers, const std::filesystem::path& folder, const Args& flags,
                const std::string& host = "127.0.0.1")
      : Cluster(servers, workers, {"linear", "--checkpoint_dir=" + folder.string()}, flags, host) {}
};

// Worker 0 trains to its end, and the only server ends after it. Returns what the server said.
inline ProcessResult check_trains(const Cluster& cluster, Process& ps,
                                  const ProcessOptions& options = {}) {
  const ProcessResult worker = cluster.start("worker", 0, {}, options)->wait();
  INFO(worker.err);
  CHECK(worker.exit_code == 0);
  const ProcessResult server = ps.wait();
  INFO(server.err);
  CHECK(server.exit_code == 0);
  return server;
}

// The last complete checkpoint's number, or -1.
inline std::int64_t latest_step(const std::filesystem::path& folder) {
  // By its name: the chief may delete the file before it is opened.
  const std::string latest = data::read_checkpoint_state(folder).latest.filename().string();
  return latest.empty() ? -1 : std::stoll(latest.substr(latest.rfind('-') + 1));
}

// Until the chief has saved a later step than `step`; false when that does not come.
inline bool checkpoint_came_after(const std::filesystem::path& folder, std::int64_t step) {
  for (int i = 0; i < 6000; ++i) {
    if (latest_step(folder) > step) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace towers::test
