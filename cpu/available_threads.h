#pragma once
// How many threads the system lets this process run at a time.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace towers::cpu {

// Numbers of the processors in the affinity mask, ascending; empty where the system does not say.
std::vector<int> allowed_processors();

// What helps against too many threads: each device has one of its own at least.
inline constexpr const char* kFewerThreads =
    "lower --compute_threads, or --cpu_devices where that is more";

// `threads` of them, to keep a thread on each, from number `first` on, and round again behind the
// last: processes that have the same ones begin at different places. Throws UsageError where there
// are fewer than `threads`.
std::vector<int> processors_for(int threads, int first = 0);

// Processors that control groups allow (control_groups has the arguments), rounded up, or nothing
// where they set no limit. Version 2's cpu.max and version 1's cpu.cfs_quota_us, as in the kernel's
// Documentation/admin-guide/cgroup-v2.rst and Documentation/scheduler/sched-bwc.rst.
std::optional<int> cgroup_threads(const std::string& membership,
                                  const std::filesystem::path& mount);

}  // namespace towers::cpu
