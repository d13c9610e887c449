#pragma once
// Free memory of a GPU, asked of the driver's management library (NVML, libnvidia-ml.so.1), which
// unlike cudaMemGetInfo makes no context and so takes no memory of that GPU.

#include <cstdint>
#include <optional>
#include <string>

namespace towers::cuda {

struct Memory {
  std::uint64_t free = 0, total = 0;  // bytes
};

class ManagementLibrary {
 public:
  ManagementLibrary();
  ~ManagementLibrary();
  ManagementLibrary(const ManagementLibrary&) = delete;
  ManagementLibrary& operator=(const ManagementLibrary&) = delete;

  // Of the device named "GPU-..." or "MIG-..."; nothing where the library or that device is not
  // there.
  std::optional<Memory> memory(const std::string& uuid) const;

 private:
  void* library_ = nullptr;  // null: not there
};

}  // namespace towers::cuda
