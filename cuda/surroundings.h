#pragma once
// What this machine and process say about NVIDIA devices, gathered in one place so that every
// decision on it is a function that tests can call with other facts.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace towers::cuda {

struct Surroundings {
  std::optional<std::string> visible_devices{};  // CUDA_VISIBLE_DEVICES
  // The driver's device node: /dev/nvidia0 (a container may have another number alone), or under
  // WSL /dev/dxg beside NVIDIA's library. Empty without one.
  std::string device_node{};
  std::string pci_device{};  // an NVIDIA display device on the PCI bus, as 0000:41:00.0
  std::string driver_library = "libcuda.so.1";
  std::string library_path{};                    // LD_LIBRARY_PATH
  std::vector<std::filesystem::path> modules{};  // where the module may be, in this order
};

// This process's. The module is looked for where TOWERS_CUDA_MODULE says (a file, for tests), else
// beside the binary and in the folder lib beside the binary's.
Surroundings look_around();

enum class NvidiaPresence {
  none,
  hidden,          // CUDA_VISIBLE_DEVICES leaves none
  without_driver,  // on the PCI bus, but nothing that a program can open
  present
};
NvidiaPresence nvidia_presence(const Surroundings& surroundings);

}  // namespace towers::cuda
