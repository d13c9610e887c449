#include "cluster/cluster_spec.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>

#include "core/error.h"

namespace towers::cluster {
namespace {

constexpr std::size_t kLongestAddress = 300;  // a name has at most 253 characters
constexpr const char* kExample =
    "; a list of host:port, ports from 1 to 65535, for example node1:2222,10.0.0.7:2222,[::1]:2222";

bool is_port(std::string_view text) {
  if (text.empty() || text.size() > 5 || text.front() == '0') return false;
  int port = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    port = 10 * port + (c - '0');
  }
  return port <= 65535;
}

bool is_host(std::string_view text) {
  const bool bracketed = text.starts_with('[') && text.ends_with(']') && text.size() > 2;
  if (bracketed) text = text.substr(1, text.size() - 2);
  return !text.empty() && std::all_of(text.begin(), text.end(), [bracketed](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' ||
           (bracketed && (c == ':' || c == '%'));
  });
}

bool is_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  return text.size() <= kLongestAddress && colon != std::string_view::npos &&
         is_host(text.substr(0, colon)) && is_port(text.substr(colon + 1));
}

std::vector<std::string> parse_list(const std::string& flag, const std::string& text) {
  if (text.empty()) throw UsageError("--" + flag + " is empty" + kExample);
  std::vector<std::string> list;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    list.push_back(text.substr(start, end - start));
    if (!is_address(list.back()))
      throw UsageError("--" + flag + ": '" + list.back() + "' is not host:port" + kExample);
    start = end + 1;
  }
  return list;
}

std::string name(const char* job, const std::vector<std::string>& hosts, int index) {
  return job + (" " + std::to_string(index)) + " (" + hosts[static_cast<std::size_t>(index)] + ")";
}

}  // namespace

ClusterSpec parse_cluster(const std::string& ps_hosts, const std::string& worker_hosts) {
  ClusterSpec cluster{parse_list("ps_hosts", ps_hosts), parse_list("worker_hosts", worker_hosts)};
  std::vector<std::string> all = cluster.ps_hosts;
  all.insert(all.end(), cluster.worker_hosts.begin(), cluster.worker_hosts.end());
  for (std::string& address : all)  // names know no case
    std::transform(address.begin(), address.end(), address.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  if (twice != all.end())
    throw UsageError("--ps_hosts and --worker_hosts: " + *twice +
                     " occurs twice; each task needs an address of its own");
  return cluster;
}

Task parse_task(const ClusterSpec& cluster, const std::string& job_name, int task_index) {
  if (job_name != "ps" && job_name != "worker")
    throw UsageError(
        (job_name.empty() ? "--job_name is missing" : "--job_name=" + job_name + ": unknown") +
        std::string("; with --ps_hosts it is ps or worker"));
  const Job job = job_name == "ps" ? Job::ps : Job::worker;
  const int tasks = job == Job::ps ? cluster.servers() : cluster.workers();
  if (task_index < 0 || task_index >= tasks)
    throw UsageError("--task_index=" + std::to_string(task_index) + ": --" + job_name +
                     "_hosts has " + std::to_string(tasks) + (tasks == 1 ? " entry" : " entries") +
                     ", so it is " + (tasks == 1 ? "0" : "0 to " + std::to_string(tasks - 1)));
  return {job, task_index};
}

std::string ps_name(const ClusterSpec& cluster, int index) {
  return name("ps", cluster.ps_hosts, index);
}

std::string worker_name(const ClusterSpec& cluster, int index) {
  return name("worker", cluster.worker_hosts, index);
}

std::string host_of(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

std::string port_of(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& item : list) text += (text.empty() ? "" : ",") + item;
  return text;
}

}  // namespace towers::cluster
