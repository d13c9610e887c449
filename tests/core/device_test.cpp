#include "core/device.h"

#include <catch2/catch.hpp>

#include "core/error.h"

namespace towers {
namespace {

std::vector<Device> some_devices(DeviceKind kind, int count) {
  std::vector<Device> devices(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    devices[static_cast<std::size_t>(i)].kind = kind;
    devices[static_cast<std::size_t>(i)].index = i;
  }
  return devices;
}

std::string strict_placement_error(int towers, const std::vector<Device>& devices) {
  try {
    place_towers(towers, devices, false);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("Devices have TensorFlow's names") {
  const Device cpu = some_devices(DeviceKind::cpu, 1).front();
  const Device gpu = some_devices(DeviceKind::gpu, 4).back();
  CHECK(short_name(cpu) == "/cpu:0");
  CHECK(short_name(gpu) == "/gpu:3");
  CHECK(full_name(cpu) == "/job:localhost/replica:0/task:0/device:CPU:0");
  CHECK(full_name(gpu) == "/job:localhost/replica:0/task:0/device:GPU:3");
}

TEST_CASE("A tower has a device of its own while there are enough") {
  for (const bool soft : {false, true}) {
    const Placement placement = place_towers(2, some_devices(DeviceKind::gpu, 3), soft);
    CHECK(placement.device_of_tower == std::vector<int>{0, 1});
    CHECK_FALSE(placement.shared);
  }
}

TEST_CASE("Soft placement goes round the devices again") {
  const Placement placement = place_towers(5, some_devices(DeviceKind::gpu, 2), true);
  CHECK(placement.device_of_tower == std::vector<int>{0, 1, 0, 1, 0});
  CHECK(placement.shared);
  CHECK(place_towers(3, some_devices(DeviceKind::cpu, 1), true).device_of_tower ==
        std::vector<int>{0, 0, 0});
}

TEST_CASE("Strict placement names the device that is not there, and those that are") {
  CHECK(strict_placement_error(2, some_devices(DeviceKind::gpu, 1)) ==
        "Cannot assign a device for operation 'tower_1': Operation was explicitly assigned to "
        "/device:GPU:1 but available devices are [ /job:localhost/replica:0/task:0/device:GPU:0 ]. "
        "Make sure the device specification refers to a valid device.");
  CHECK(strict_placement_error(8, some_devices(DeviceKind::cpu, 2)) ==
        "Cannot assign a device for operation 'tower_2': Operation was explicitly assigned to "
        "/device:CPU:2 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0, "
        "/job:localhost/replica:0/task:0/device:CPU:1 ]. "
        "Make sure the device specification refers to a valid device.");
}

}  // namespace towers
