#include "cpu/available_threads.h"

#include <catch2/catch.hpp>

#include "cpu/backend.h"
#include "tests/support.h"

namespace towers::cpu::test {
namespace {

using towers::test::TemporaryFolder;

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  towers::test::write_file(file, text);
}

TEST_CASE("the quota of a version 2 control group") {
  TemporaryFolder mount;
  const std::string membership = "0::/user.slice/job\n";
  CHECK_FALSE(cgroup_threads(membership, mount.path()).has_value());
  write_file(mount.path() / "user.slice/job/cpu.max", "max 100000\n");
  CHECK_FALSE(cgroup_threads(membership, mount.path()).has_value());
  write_file(mount.path() / "user.slice/job/cpu.max", "250000 100000\n");
  CHECK(cgroup_threads(membership, mount.path()) == 3);
  write_file(mount.path() / "user.slice/cpu.max", "200000 100000\n");  // one above is tighter
  CHECK(cgroup_threads(membership, mount.path()) == 2);
  write_file(mount.path() / "cpu.max", "1000 100000\n");  // and the root, as containers see it
  CHECK(cgroup_threads(membership, mount.path()) == 1);
}

TEST_CASE("the quota of a version 1 control group") {
  TemporaryFolder mount;
  const std::string membership = "9:memory:/a\n4:cpuset:/a\n3:cpu,cpuacct:/a/b\n0::/\n";
  const std::filesystem::path group = mount.path() / "cpu,cpuacct/a/b";
  write_file(group / "cpu.cfs_quota_us", "-1\n");
  write_file(group / "cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(cgroup_threads(membership, mount.path()).has_value());
  write_file(group / "cpu.cfs_quota_us", "150000\n");
  CHECK(cgroup_threads(membership, mount.path()) == 2);
  write_file(mount.path() / "memory/a/cpu.cfs_quota_us", "1\n");  // not the cpu controller
  write_file(mount.path() / "memory/a/cpu.cfs_period_us", "100000\n");
  CHECK(cgroup_threads(membership, mount.path()) == 2);
}

TEST_CASE("a container's path that is not mounted, and lines that are none") {
  TemporaryFolder mount;
  CHECK_FALSE(cgroup_threads("", mount.path()).has_value());
  CHECK_FALSE(cgroup_threads("nonsense\n:\n", mount.path()).has_value());
  write_file(mount.path() / "cpu.max", "300000 100000\n");
  CHECK(cgroup_threads("0::/docker/0123456789abcdef\n", mount.path()) == 3);
  CHECK(cgroup_threads("0::/../..\n", mount.path()) == 3);
  write_file(mount.path() / "cpu.max", "garbage\n");
  CHECK_FALSE(cgroup_threads("0::/\n", mount.path()).has_value());
}

TEST_CASE("there is at least one thread") {
  CHECK(available_threads() >= 1);
}

}  // namespace
}  // namespace towers::cpu::test
