#include "cpu/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "cpu/control_groups.h"

namespace towers::cpu {
namespace {

std::uint64_t resident(const std::filesystem::path& proc) {
  std::ifstream file(proc / "self/statm");
  std::uint64_t size = 0, pages = 0;
  if (!(file >> size >> pages)) return 0;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::optional<std::uint64_t> memory_within_reach(const std::filesystem::path& proc,
                                                 const std::filesystem::path& cgroup) {
  std::ifstream info(proc / "meminfo");
  std::optional<std::uint64_t> available;
  std::uint64_t swap = 0, kibibytes = 0;
  for (std::string name, unit; info >> name >> kibibytes && std::getline(info, unit);) {
    if (name == "MemAvailable:") available = kibibytes * 1024;
    if (name == "SwapFree:") swap = kibibytes * 1024;
  }
  if (!available) return std::nullopt;
  std::uint64_t reach = *available + swap + resident(proc);
  for (const auto& group : control_groups(text_of(proc / "self/cgroup"), cgroup, "memory"))
    for (const char* name : {"memory.max", "memory.limit_in_bytes"}) {
      std::ifstream file(group / name);
      if (std::uint64_t limit = 0; file >> limit) reach = std::min(reach, limit);  // "max": none
    }
  return reach;
}

}  // namespace towers::cpu
