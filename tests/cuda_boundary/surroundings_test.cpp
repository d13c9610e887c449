#include "cuda/surroundings.h"

#include <catch2/catch.hpp>

namespace towers::cuda {
namespace {

Surroundings server() {
  Surroundings s;
  s.device_node = "/dev/nvidia0";
  s.pci_device = "0000:41:00.0";
  return s;
}

}  // namespace

TEST_CASE("An NVIDIA device is present where its node is and the mask leaves one") {
  CHECK(nvidia_presence({}) == NvidiaPresence::none);
  CHECK(nvidia_presence(server()) == NvidiaPresence::present);
  Surroundings s = server();
  s.pci_device = "";  // a container need not see the bus
  CHECK(nvidia_presence(s) == NvidiaPresence::present);
  for (const char* mask : {"0", "1,0", "GPU-8932f937", "MIG-1", "0,-1", "0,0"}) {
    INFO(mask);
    s.visible_devices = mask;
    CHECK(nvidia_presence(s) == NvidiaPresence::present);
  }
}

TEST_CASE("A mask that leaves no GPU hides the device") {
  for (const char* mask : {"", "-1", "NoDevFiles", " "}) {
    INFO("'" << mask << "'");
    Surroundings s = server();
    s.visible_devices = mask;
    CHECK(nvidia_presence(s) == NvidiaPresence::hidden);
    s.device_node = s.pci_device = "";
    CHECK(nvidia_presence(s) == NvidiaPresence::none);
  }
}

TEST_CASE("A device on the bus without a node has no driver") {
  Surroundings s = server();
  s.device_node = "";
  CHECK(nvidia_presence(s) == NvidiaPresence::without_driver);
}

TEST_CASE("The module is looked for beside the binary, then in lib beside its folder") {
  const std::vector<std::filesystem::path> modules = look_around().modules;
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  REQUIRE(modules.size() == 2);
  CHECK(modules[0] == here / "libtowers_cuda.so");
  CHECK(modules[1] == here.parent_path() / "lib/towers/libtowers_cuda.so");
}

}  // namespace towers::cuda
