#pragma once
// Parameter servers and workers as processes on the loopback.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

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

  // command: with its folder, of every task; flags: what else they all get.
  Cluster(int servers, int workers, Args command, const Args& flags)
      : command_(std::move(command)) {
    command_.insert(command_.end(), flags.begin(), flags.end());
    const std::vector<int> ports = free_ports(servers + workers);
    for (int i = 0; i < servers + workers; ++i)
      (i < servers ? ps_hosts_ : worker_hosts_)
          .push_back("127.0.0.1:" + std::to_string(ports[static_cast<std::size_t>(i)]));
  }

  Args args(const std::string& job, int index, const Args& more = {}) const {
    Args all{command_.front(), "--ps_hosts=" + joined(ps_hosts_),
             "--worker_hosts=" + joined(worker_hosts_), "--job_name=" + job,
             "--task_index=" + std::to_string(index)};
    all.insert(all.end(), command_.begin() + 1, command_.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::unique_ptr<Process> start(const std::string& job, int index, const Args& more = {}) const {
    return std::make_unique<Process>(args(job, index, more));
  }
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
  LinearCluster(int servers, int workers, const std::filesystem::path& folder, const Args& flags)
      : Cluster(servers, workers, {"linear", "--checkpoint_dir=" + folder.string()}, flags) {}
};

}  // namespace towers::test
