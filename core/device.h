#pragma once
// Devices and the placement of towers on them.

#include <cstdint>
#include <string>
#include <vector>

namespace towers {

enum class DeviceKind { cpu, gpu };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  std::string description;  // processor or GPU model
  int threads = 0;          // of a CPU device
  // GPUs:
  std::string compute_capability, pci_bus_id, uuid;
  std::uint64_t memory_free = 0, memory_total = 0;  // bytes

  bool operator==(const Device&) const = default;
};

// "/cpu:0", "/gpu:1", as TensorFlow's device-listing helper prints them.
std::string short_name(const Device& device);
// "/job:localhost/replica:0/task:0/device:GPU:1"
std::string full_name(const Device& device);

struct Placement {
  std::vector<int> device_of_tower;  // index into the list of devices given
  bool shared = false;               // some device runs more than one tower
};

// Tower t goes to device t; beyond the last device soft placement goes round again. Strict
// placement of a tower on a device that is not there is an Error with TensorFlow's words ("Cannot
// assign a device for operation ..."). `devices` is not empty and all of one kind.
Placement place_towers(int towers, const std::vector<Device>& devices, bool allow_soft_placement);

}  // namespace towers
