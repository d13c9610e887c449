#pragma once
// Who takes part: the addresses of --ps_hosts and --worker_hosts, and which of them this process
// is.

#include <string>
#include <vector>

namespace towers::cluster {

struct ClusterSpec {
  std::vector<std::string> ps_hosts;      // host:port, [IPv6]:port
  std::vector<std::string> worker_hosts;  // worker 0 is the chief

  int servers() const { return static_cast<int>(ps_hosts.size()); }
  int workers() const { return static_cast<int>(worker_hosts.size()); }
};

enum class Job { ps, worker };

// One process of the cluster.
struct Task {
  Job job = Job::worker;
  int index = 0;
};

// From the values of the flags: comma-separated lists. Throws UsageError that names the flag and
// what it takes: an empty list, something that is not host:port, an address that occurs twice.
ClusterSpec parse_cluster(const std::string& ps_hosts, const std::string& worker_hosts);

// Throws UsageError: an unknown job_name, a task_index that the job's list does not have.
Task parse_task(const ClusterSpec& cluster, const std::string& job_name, int task_index);

// "ps 0 (127.0.0.1:2222)", for messages.
std::string ps_name(const ClusterSpec& cluster, int index);
std::string worker_name(const ClusterSpec& cluster, int index);

// Host and port of a checked address; the brackets of an IPv6 address are taken off.
std::string host_of(const std::string& address);
std::string port_of(const std::string& address);
// Whether `host` reaches this machine alone: localhost, 127.0.0.0/8, ::1.
bool is_loopback(const std::string& host);

// Addresses as the flags take them: host:port,host:port.
std::string joined(const std::vector<std::string>& list);

}  // namespace towers::cluster
