#include "app/backend_choice.h"

#include <catch2/catch.hpp>

#include "core/error.h"
#include "tests/cuda_boundary/modules.h"

namespace towers::app {
namespace {

cuda::Surroundings gpu_server() {
  cuda::Surroundings s;
  s.device_node = "/dev/nvidia0";
  s.driver_library = "libc.so.6";
  s.modules = {test::module_file("fake_gpus")};
  return s;
}

cli::CommonOptions wish(const std::string& device) {
  cli::CommonOptions options;
  options.device = device;
  options.compute_threads = 1;
  return options;
}

bool on_gpu(const std::string& device, const cuda::Surroundings& s) {
  return make_backend(wish(device), s)->devices().front().kind == DeviceKind::gpu;
}

std::string error_of(const std::string& device, const cuda::Surroundings& s) {
  try {
    make_backend(wish(device), s);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("On a machine with a usable GPU auto takes it, and cpu does not") {
  CHECK(on_gpu("auto", gpu_server()));
  CHECK(on_gpu("gpu", gpu_server()));
  CHECK_FALSE(on_gpu("cpu", gpu_server()));
}

TEST_CASE("Without an NVIDIA device auto takes the CPU") {
  cuda::Surroundings s = gpu_server();
  s.device_node = "";
  CHECK_FALSE(on_gpu("auto", s));
  s.pci_device = "0000:41:00.0";  // without a driver: with a warning
  CHECK_FALSE(on_gpu("auto", s));
}

TEST_CASE("A mask that hides all GPUs sends auto to the CPU and is an error for gpu") {
  cuda::Surroundings s = gpu_server();
  s.visible_devices = "-1";
  CHECK_FALSE(on_gpu("auto", s));
  CHECK(contains(error_of("gpu", s), "CUDA_VISIBLE_DEVICES: -1"));
}

TEST_CASE(
    "An NVIDIA device that cannot be used is an error for auto, with the reason and the way out") {
  cuda::Surroundings s = gpu_server();
  s.modules = {"/nowhere/libtowers_cuda.so"};
  const std::string text = error_of("auto", s);
  INFO(text);
  CHECK(contains(text, "/dev/nvidia0"));
  CHECK(contains(text, "/nowhere/libtowers_cuda.so"));
  CHECK(contains(text, "--device=cpu"));
  s.driver_library = "libnot-there.so.1";
  CHECK(contains(error_of("auto", s), "libnot-there.so.1"));
  CHECK_FALSE(on_gpu("cpu", s));
}

TEST_CASE("What gpu lacks is an error even without a device") {
  cuda::Surroundings s = gpu_server();
  s.device_node = "";
  s.driver_library = "libnot-there.so.1";
  const std::string text = error_of("gpu", s);
  INFO(text);
  CHECK(contains(text, "--device=gpu: libnot-there.so.1"));
  CHECK(contains(text, "--device=cpu"));
}

}  // namespace towers::app
