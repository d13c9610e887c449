// What memory the system can give, told in its files.

#include "cpu/available_memory.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <new>
#include <vector>

#include "cpu/memory.h"
#include "tests/support.h"

namespace towers::cpu::test {
namespace {

using towers::test::TemporaryFolder;

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

TEST_CASE("memory within reach is what is available, and what a container allows of it") {
  const TemporaryFolder folder;
  const auto proc = folder.path() / "proc", cgroup = folder.path() / "cgroup";
  CHECK_FALSE(memory_within_reach(proc, cgroup).has_value());
  write(proc / "meminfo",
        "MemTotal:       90 kB\nMemFree:  1 kB\nMemAvailable:   40 kB\nHugePages_Total:       0\n"
        "SwapFree:        2 kB\n");
  CHECK(memory_within_reach(proc, cgroup) == 42u * 1024);
  write(cgroup / "memory.max", "max\n");
  CHECK(memory_within_reach(proc, cgroup) == 42u * 1024);
  write(cgroup / "memory.max", "20480\n");
  CHECK(memory_within_reach(proc, cgroup) == 20480u);
  write(cgroup / "memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(memory_within_reach(proc, cgroup) == 20480u);
}

TEST_CASE("memory that is not there is refused when it is asked for, not when it is used") {
  const auto reach = memory_within_reach();
  if (!reach) return towers::test::skip("the system does not tell its memory");
  // In parts, each of which the system would grant.
  std::vector<Pages> held;
  const std::size_t part = std::max<std::size_t>(*reach / 4, std::size_t{64} << 20);
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 8; ++i) held.emplace_back(part);
      }(),
      std::bad_alloc);
  CHECK(held.size() >= 1);
  held.clear();
  CHECK_NOTHROW(Pages(part));
}

}  // namespace
}  // namespace towers::cpu::test
