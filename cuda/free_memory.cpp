#include "cuda/free_memory.h"

#include <dlfcn.h>

namespace towers::cuda {
namespace {

// NVML's interface, as its reference manual gives it: calls return 0 on success. Its header is not
// needed for these few.
struct NvmlMemory {
  unsigned long long total, free, used;
};
using Call = int (*)();
using HandleByUuid = int (*)(const char* uuid, void** device);
using MemoryInfo = int (*)(void* device, NvmlMemory* memory);

template <class Function>
Function function(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace

ManagementLibrary::ManagementLibrary() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  if (library_ == nullptr) return;
  const auto start = function<Call>(library_, "nvmlInit_v2");
  if (start != nullptr && start() == 0) return;
  ::dlclose(library_);
  library_ = nullptr;
}

ManagementLibrary::~ManagementLibrary() {
  if (library_ == nullptr) return;
  if (const auto end = function<Call>(library_, "nvmlShutdown")) end();
  ::dlclose(library_);
}

std::optional<Memory> ManagementLibrary::memory(const std::string& uuid) const {
  if (library_ == nullptr) return std::nullopt;
  const auto handle_of = function<HandleByUuid>(library_, "nvmlDeviceGetHandleByUUID");
  const auto memory_of = function<MemoryInfo>(library_, "nvmlDeviceGetMemoryInfo");
  void* device = nullptr;
  NvmlMemory memory{};
  if (handle_of == nullptr || memory_of == nullptr || handle_of(uuid.c_str(), &device) != 0 ||
      memory_of(device, &memory) != 0)
    return std::nullopt;
  return Memory{.free = memory.free, .total = memory.total};
}

}  // namespace towers::cuda
