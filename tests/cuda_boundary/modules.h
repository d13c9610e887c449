#pragma once
// The modules that these tests load.

#include <filesystem>
#include <string>

namespace towers::test {

inline std::filesystem::path module_file(const std::string& name) {
  return std::filesystem::path(TOWERS_MODULES) / ("lib" + name + ".so");
}

// A folder with a libcuda.so.1 that can do nothing.
inline std::string driver_folder() {
  return std::string(TOWERS_MODULES) + "/driver";
}

}  // namespace towers::test
