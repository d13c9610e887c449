#pragma once
// The control groups that a process is in: what containers, Slurm and systemd set limits by.

#include <filesystem>
#include <string>
#include <vector>

namespace towers::cpu {

// The folders of the groups that limit `controller` ("cpu", "memory") for a process, its own one
// and all above, whether they are there or not. `membership` is the text of its /proc/PID/cgroup,
// `mount` the folder where control groups are mounted (/sys/fs/cgroup). Version 2 and version 1, as
// in the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/cgroups.rst.
std::vector<std::filesystem::path> control_groups(const std::string& membership,
                                                  const std::filesystem::path& mount,
                                                  const std::string& controller);

// The text of a file; empty where it cannot be read.
std::string text_of(const std::filesystem::path& file);

}  // namespace towers::cpu
