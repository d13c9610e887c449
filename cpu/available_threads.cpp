#include "cpu/available_threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <thread>

#include "core/error.h"
#include "cpu/backend.h"
#include "cpu/control_groups.h"

namespace towers::cpu {
namespace {

// quota / period in processors. Version 2 has both in one file, and "max" for no limit; version 1
// has -1.
std::optional<double> quota_of(const std::filesystem::path& group) {
  std::istringstream text(text_of(group / "cpu.max") + text_of(group / "cpu.cfs_quota_us") + " " +
                          text_of(group / "cpu.cfs_period_us"));
  double quota = 0, period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

std::vector<int> allowed_processors() {
  // The mask may be larger than cpu_set_t.
  for (int processors = CPU_SETSIZE; processors <= CPU_SETSIZE * 64; processors *= 2) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<std::size_t>(processors));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(processors));
    const bool known = mask != nullptr && ::sched_getaffinity(0, bytes, mask) == 0;
    std::vector<int> allowed;
    for (int p = 0; known && p < processors; ++p)
      if (CPU_ISSET_S(static_cast<std::size_t>(p), bytes, mask)) allowed.push_back(p);
    CPU_FREE(mask);
    if (known) return allowed;
  }
  return {};
}

std::vector<int> processors_for(int threads, int first) {
  std::vector<int> processors = allowed_processors();
  if (static_cast<int>(processors.size()) < threads)
    throw UsageError(
        "--pin_threads keeps each compute thread on a processor of its own, and there are " +
        std::to_string(threads) + " threads for " + std::to_string(processors.size()) +
        " processors; " + kFewerThreads);
  std::rotate(processors.begin(), processors.begin() + first % static_cast<int>(processors.size()),
              processors.end());
  processors.resize(static_cast<std::size_t>(threads));
  return processors;
}

std::optional<int> cgroup_threads(const std::string& membership,
                                  const std::filesystem::path& mount) {
  std::optional<double> least;
  for (const std::filesystem::path& group : control_groups(membership, mount, "cpu")) {
    const std::optional<double> quota = quota_of(group);
    if (quota && (!least || *quota < *least)) least = quota;
  }
  if (!least) return std::nullopt;
  return std::max(1, static_cast<int>(std::ceil(*least)));
}

int available_threads() {
  const std::vector<int> processors = allowed_processors();
  const int threads =
      std::max(1, processors.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                                     : static_cast<int>(processors.size()));
  const std::optional<int> quota = cgroup_threads(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  return quota ? std::min(threads, *quota) : threads;
}

}  // namespace towers::cpu
