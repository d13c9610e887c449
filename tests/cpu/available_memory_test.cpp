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

constexpr const char* kMeminfo =
    "MemTotal:       90 kB\nMemFree:  1 kB\nMemAvailable:   40 kB\nHugePages_Total:       0\n"
    "SwapFree:        2 kB\n";

TEST_CASE("memory within reach is what is available, and what a container allows of it") {
  const TemporaryFolder folder;
  const auto proc = folder.path() / "proc", cgroup = folder.path() / "cgroup";
  CHECK_FALSE(memory_within_reach(proc, cgroup).has_value());
  write(proc / "meminfo", kMeminfo);
  CHECK(memory_within_reach(proc, cgroup) == 42u * 1024);
  write(proc / "self/cgroup", "9:memory:/docker/0123456789abcdef\n0::/\n");
  write(cgroup / "memory.max", "max\n");
  CHECK(memory_within_reach(proc, cgroup) == 42u * 1024);
  write(cgroup / "memory.max", "20480\n");
  CHECK(memory_within_reach(proc, cgroup) == 20480u);
  write(cgroup / "memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(memory_within_reach(proc, cgroup) == 20480u);
  write(cgroup / "memory/memory.limit_in_bytes", "8192\n");
  CHECK(memory_within_reach(proc, cgroup) == 8192u);
}

TEST_CASE("the memory of a version 2 control group, and of those above") {
  const TemporaryFolder folder;
  const auto proc = folder.path() / "proc", cgroup = folder.path() / "cgroup";
  write(proc / "meminfo", kMeminfo);
  write(proc / "self/cgroup", "0::/system.slice/slurmstepd.scope/job_1\n");
  write(cgroup / "system.slice/slurmstepd.scope/job_1/memory.max", "20480\n");
  CHECK(memory_within_reach(proc, cgroup) == 20480u);
  write(cgroup / "system.slice/memory.max", "16384\n");
  CHECK(memory_within_reach(proc, cgroup) == 16384u);
  write(cgroup / "user.slice/memory.max", "4096\n");  // of others
  CHECK(memory_within_reach(proc, cgroup) == 16384u);
}

TEST_CASE("the memory of a version 1 control group") {
  const TemporaryFolder folder;
  const auto proc = folder.path() / "proc", cgroup = folder.path() / "cgroup";
  write(proc / "meminfo", kMeminfo);
  write(proc / "self/cgroup", "9:memory:/slurm/uid_0/job_1\n3:cpu,cpuacct:/other\n");
  write(cgroup / "memory/slurm/uid_0/job_1/memory.limit_in_bytes", "20480\n");
  CHECK(memory_within_reach(proc, cgroup) == 20480u);
  write(cgroup / "cpu,cpuacct/other/memory.limit_in_bytes", "4096\n");  // not that controller's
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
