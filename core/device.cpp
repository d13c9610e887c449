#include "core/device.h"

#include <algorithm>

#include "core/error.h"

namespace towers {

std::string short_name(const Device& device) {
  return (device.kind == DeviceKind::gpu ? "/gpu:" : "/cpu:") + std::to_string(device.index);
}

std::string full_name(const Device& device) {
  return std::string("/job:localhost/replica:0/task:0/device:") +
         (device.kind == DeviceKind::gpu ? "GPU:" : "CPU:") + std::to_string(device.index);
}

Placement place_towers(int towers, const std::vector<Device>& devices, bool allow_soft_placement) {
  const int available = static_cast<int>(devices.size());
  if (towers > available && !allow_soft_placement) {
    std::string names;
    for (const Device& d : devices) names += (names.empty() ? "" : ", ") + full_name(d);
    Device missing = devices.front();
    missing.index = available;
    const std::string tower = "tower_" + std::to_string(available);
    const std::string full = full_name(missing);
    throw Error("Cannot assign a device for operation '" + tower +
                "': Operation was explicitly assigned to " + full.substr(full.find("/device:")) +
                " but available devices are [ " + names +
                " ]. Make sure the device specification refers to a valid device.");
  }
  Placement placement;
  for (int t = 0; t < towers; ++t) placement.device_of_tower.push_back(t % available);
  placement.shared = towers > available;
  return placement;
}

}  // namespace towers
