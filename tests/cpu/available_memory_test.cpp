// What memory the system can give, told in its files.

#include "cpu/available_memory.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <new>
#include <optional>
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

// A system made of files.
struct System {
  TemporaryFolder folder;
  std::filesystem::path proc = folder.path() / "proc", cgroup = folder.path() / "cgroup";

  std::optional<std::uint64_t> reach() const { return memory_within_reach(proc, cgroup); }
  // With so much memory, and a process that is in these control groups.
  void start(const std::string& groups) const {
    write(proc / "meminfo", kMeminfo);
    write(proc / "self/cgroup", groups);
  }
  void limit(const std::string& file, const std::string& bytes) const {
    write(cgroup / file, bytes + "\n");
  }
};

TEST_CASE("memory within reach is what is available, and what a container allows of it") {
  const System system;
  CHECK_FALSE(system.reach().has_value());
  write(system.proc / "meminfo", kMeminfo);
  CHECK(system.reach() == 42u * 1024);
  system.start("9:memory:/docker/0123456789abcdef\n0::/\n");
  system.limit("memory.max", "max");
  CHECK(system.reach() == 42u * 1024);
  system.limit("memory.max", "20480");
  CHECK(system.reach() == 20480u);
  system.limit("memory/memory.limit_in_bytes", "9223372036854771712");
  CHECK(system.reach() == 20480u);
  system.limit("memory/memory.limit_in_bytes", "8192");
  CHECK(system.reach() == 8192u);
}

TEST_CASE("the memory of a version 2 control group, and of those above") {
  const System system;
  system.start("0::/system.slice/slurmstepd.scope/job_1\n");
  system.limit("system.slice/slurmstepd.scope/job_1/memory.max", "20480");
  CHECK(system.reach() == 20480u);
  system.limit("system.slice/memory.max", "16384");
  CHECK(system.reach() == 16384u);
  system.limit("user.slice/memory.max", "4096");  // of others
  CHECK(system.reach() == 16384u);
}

TEST_CASE("the memory of a version 1 control group") {
  const System system;
  system.start("9:memory:/slurm/uid_0/job_1\n3:cpu,cpuacct:/other\n");
  system.limit("memory/slurm/uid_0/job_1/memory.limit_in_bytes", "20480");
  CHECK(system.reach() == 20480u);
  system.limit("cpu,cpuacct/other/memory.limit_in_bytes", "4096");  // not that controller's
  CHECK(system.reach() == 20480u);
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
