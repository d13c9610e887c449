#pragma once
// How much memory the system can give this process.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace towers::cpu {

// Bytes that this process may come to hold, those that it holds counted in: what the system has
// available (MemAvailable and free swap space of `proc`/meminfo, as in proc(5)), and no more than
// the least limit of its control groups, which `proc`/self/cgroup names and `cgroup` has
// (memory.max, or version 1's memory.limit_in_bytes). Nothing where the system does not say. It
// hands out more than that and kills who comes to use it.
std::optional<std::uint64_t> memory_within_reach(
    const std::filesystem::path& proc = "/proc",
    const std::filesystem::path& cgroup = "/sys/fs/cgroup");

}  // namespace towers::cpu
