#pragma once
// File systems for one test process alone, where the system allows it: they end with the process.

#include <sched.h>
#include <sys/mount.h>

#include <filesystem>
#include <string>

namespace towers::test {

// False where this process may not mount (no root, or a container that does not allow it).
inline bool private_mounts_allowed() {
  static const bool allowed = ::unshare(CLONE_NEWNS) == 0 &&
                              ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return allowed;
}

// A new folder `dir` in memory that holds `megabytes`.
inline bool mount_memory(const std::filesystem::path& dir, int megabytes) {
  std::filesystem::create_directories(dir);
  const std::string size = "size=" + std::to_string(megabytes) + "m";
  return ::mount("tmpfs", dir.c_str(), "tmpfs", 0, size.c_str()) == 0;
}

// From now on `dir` can only be read, by root too.
inline bool mount_read_only(const std::filesystem::path& dir) {
  return ::mount(dir.c_str(), dir.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
         ::mount(nullptr, dir.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
}

}  // namespace towers::test
