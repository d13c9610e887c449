#include "app/exchange_metadata.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace towers::app {
namespace {

// Paths, and the tasks of a cluster with its secrets' places.
constexpr std::array kOfThisMachine{
    "train_dir",   "data_dir",           "data_url", "data_sha256",  "init_from",
    "metrics_log", "trace_file",         "ps_hosts", "worker_hosts", "job_name",
    "task_index",  "cluster_token_file", "tls_cert", "tls_key",      "tls_ca"};

bool is_portable(std::string_view line) {
  if (!line.starts_with("--")) return false;
  const std::string_view name = line.substr(2, line.find_first_of("= ") - 2);
  return std::find(kOfThisMachine.begin(), kOfThisMachine.end(), name) == kOfThisMachine.end();
}

}  // namespace

std::string portable_flags(const std::string& flagfile) {
  std::istringstream lines(flagfile);
  std::string portable;
  for (std::string line; std::getline(lines, line);)
    if (is_portable(line)) portable += line + "\n";
  return portable;
}

}  // namespace towers::app
