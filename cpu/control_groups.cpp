#include "cpu/control_groups.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace towers::cpu {
namespace {

// Whether a list of controllers, "cpu,cpuacct", has the one of that name.
bool has(const std::string& controllers, const std::string& controller) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');)
    if (name == controller) return true;
  return false;
}

}  // namespace

std::vector<std::filesystem::path> control_groups(const std::string& membership,
                                                  const std::filesystem::path& mount,
                                                  const std::string& controller) {
  std::vector<std::filesystem::path> groups;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/a/b" or "0::/a/b"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !has(controllers, controller)) continue;
    const std::filesystem::path hierarchy = mount / controllers;
    // In a container the path may be the host's, of which only the end, or nothing, is mounted
    // here: folders that are not there set no limit.
    std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (; !group.empty(); group = group.parent_path()) groups.push_back(hierarchy / group);
    groups.push_back(hierarchy);
  }
  return groups;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace towers::cpu
