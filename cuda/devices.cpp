#include "cuda/devices.h"

#include <cuda_runtime.h>

#include <cstdio>
#include <string>

#include "core/error.h"
#include "cuda/free_memory.h"
#include "cuda/runtime.h"

namespace towers::cuda {
namespace {

std::string version_text(int version) {  // 13000 is 13.0, 12040 is 12.4
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_none(cudaError_t status) {
  if (status == cudaSuccess || status == cudaErrorNoDevice)
    return "no CUDA device is there; see nvidia-smi (a container gets GPUs with --gpus=all)";
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (status == cudaErrorInsufficientDriver && driver > 0)
    return "the NVIDIA driver takes CUDA up to " + version_text(driver) +
           " and this build is for " + version_text(runtime) +
           "; update the driver, or build with a toolkit of CUDA " + std::to_string(driver / 1000);
  return std::string("CUDA does not start: ") + cudaGetErrorString(status) + " (" +
         cudaGetErrorName(status) + "); see nvidia-smi";
}

// 8-4-4-4-12 hexadecimal digits.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

Device describe(int ordinal, const ManagementLibrary& management) {
  cudaDeviceProp properties;
  TOWERS_CUDA(cudaGetDeviceProperties(&properties, ordinal));
  Device device;
  device.kind = DeviceKind::gpu;
  device.index = ordinal;
  device.description = properties.name;
  device.compute_capability =
      std::to_string(properties.major) + "." + std::to_string(properties.minor);
  char bus[32];
  std::snprintf(bus, sizeof bus, "%08x:%02x:%02x.0", static_cast<unsigned>(properties.pciDomainID),
                static_cast<unsigned>(properties.pciBusID),
                static_cast<unsigned>(properties.pciDeviceID));
  device.pci_bus_id = bus;

  const std::string uuid = uuid_text(properties.uuid);
  for (const char* kind : {"GPU-", "MIG-"}) {  // a part of a GPU has a name of its own
    const auto memory = management.memory(kind + uuid);
    if (!memory) continue;
    device.uuid = kind + uuid;
    device.memory_free = memory->free;
    device.memory_total = memory->total;
    return device;
  }
  device.uuid = "GPU-" + uuid;
  device.memory_total = properties.totalGlobalMem;
  std::size_t free = 0, total = 0;
  if (cudaSetDevice(ordinal) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess)
    device.memory_free = free;
  cudaGetLastError();  // a GPU that is full or held by another process is listed all the same
  return device;
}

}  // namespace

std::vector<Device> list_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status != cudaSuccess || count == 0) throw Error(why_none(status));
  const ManagementLibrary management;
  std::vector<Device> devices;
  for (int ordinal = count - 1; ordinal >= 0; --ordinal)  // so that the first is the current one
    devices.insert(devices.begin(), describe(ordinal, management));
  return devices;
}

}  // namespace towers::cuda
