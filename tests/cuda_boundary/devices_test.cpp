// The listing of GPUs, on the stand-in for the CUDA runtime.

#include "cuda/devices.h"

#include <catch2/catch.hpp>

#include "core/error.h"
#include "tests/cuda_host/control.h"

namespace towers::cuda {

TEST_CASE("each GPU is listed with what tells it apart") {
  cuda_host::start({.devices = 3, .memory = std::size_t{1} << 20});
  const std::vector<Device> devices = list_devices();
  REQUIRE(devices.size() == 3);
  for (int i = 0; i < 3; ++i) {
    const Device& device = devices[static_cast<std::size_t>(i)];
    CHECK(short_name(device) == "/gpu:" + std::to_string(i));
    CHECK(device.description == "stand-in GPU");
    CHECK(device.compute_capability == "8.0");
    CHECK(device.memory_total == std::size_t{1} << 20);
    CHECK(device.memory_free == std::size_t{1} << 20);
  }
  CHECK(devices[0].pci_bus_id == "00000000:01:00.0");
  CHECK(devices[2].pci_bus_id == "00000000:03:00.0");
  CHECK(devices[2].uuid == "GPU-02020202-0202-0202-0202-020202020202");
  CHECK(cuda_host::finish().empty());
}

TEST_CASE("a machine without a GPU is an error that says what to look at") {
  cuda_host::start({.devices = 0});
  CHECK_THROWS_WITH(list_devices(), Catch::Contains("no CUDA device is there; see nvidia-smi"));
}

}  // namespace towers::cuda
