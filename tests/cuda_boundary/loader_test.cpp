// Each reason for having no towers on GPUs, for real: the shared libraries here are broken in one
// way each.

#include "cuda/loader.h"

#include <catch2/catch.hpp>

#include <towers_module_stamp.h>
#include <cstdlib>

#include "tests/cuda_boundary/modules.h"
#include "tests/support.h"

namespace towers::cuda {
namespace {

namespace fs = std::filesystem;
using test::module_file;

Surroundings with_module(const fs::path& module) {
  Surroundings s;
  s.driver_library = "libc.so.6";  // one that is there
  s.modules = {module};
  return s;
}

// The reason of a load that fails; every part is in its one line.
void check_reason(const Surroundings& s, Lack lack, const std::vector<std::string>& parts) {
  const Loaded loaded = load_backend({}, s);
  CHECK(loaded.backend == nullptr);
  REQUIRE(loaded.reason);
  CHECK(loaded.reason->lack == lack);
  INFO(loaded.reason->text);
  CHECK(loaded.reason->text.find('\n') == std::string::npos);
  for (const std::string& part : parts) {
    INFO(part);
    CHECK(loaded.reason->text.find(part) != std::string::npos);
  }
}

class FakeGpus {
 public:
  explicit FakeGpus(const char* wish) { ::setenv("TOWERS_FAKE_GPUS", wish, 1); }
  ~FakeGpus() { ::unsetenv("TOWERS_FAKE_GPUS"); }
};

}  // namespace

TEST_CASE("A module that is all right gives its backend") {
  const FakeGpus three("3");
  const Loaded loaded = load_backend({}, with_module(module_file("fake_gpus")));
  REQUIRE(loaded.backend);
  CHECK_FALSE(loaded.reason);
  CHECK(loaded.backend->devices().size() == 3);
  CHECK_FALSE(why_not_loadable(with_module(module_file("fake_gpus"))));
}

TEST_CASE("Options reach the module") {
  const Surroundings s = with_module(module_file("fake_gpus"));
  CHECK(load_backend({}, s).backend->description() == "2 fake GPUs");
  CHECK(load_backend({.allow_tf32 = true}, s).backend->description() == "2 fake GPUs, TF32");
}

TEST_CASE("The first module that is there is taken") {
  Surroundings s = with_module("/nowhere/libtowers_cuda.so");
  s.modules.push_back(module_file("fake_gpus"));
  CHECK(load_backend({}, s).backend != nullptr);
}

TEST_CASE("A mask that hides all GPUs is the reason before any other") {
  Surroundings s = with_module("/nowhere/libtowers_cuda.so");
  s.driver_library = "libnot-there.so.1";
  s.visible_devices = "-1";
  check_reason(s, Lack::visible_device, {"CUDA_VISIBLE_DEVICES: -1", "unset it"});
}

TEST_CASE("A driver that is missing is named, with the version and where it was looked for") {
  Surroundings s = with_module(module_file("fake_gpus"));
  s.driver_library = "libnot-there.so.1";
  check_reason(s, Lack::driver,
               {"libnot-there.so.1 cannot be loaded:", "driver 5", "or newer",
                "LD_LIBRARY_PATH (empty)", "install the driver"});
  s.library_path = "/opt/mine";
  check_reason(s, Lack::driver, {"LD_LIBRARY_PATH=/opt/mine"});
}

TEST_CASE("A driver that is damaged is not called missing") {
  test::TemporaryFolder folder;
  test::write_file(folder.path() / "libcuda.so.1", "not a library");
  Surroundings s = with_module(module_file("fake_gpus"));
  s.driver_library = (folder.path() / "libcuda.so.1").string();
  check_reason(s, Lack::driver, {"libcuda.so.1 cannot be loaded (", "install the driver"});
}

TEST_CASE("A module that is not there is told with the places and what builds it") {
  Surroundings s = with_module("/nowhere/libtowers_cuda.so");
  s.modules.push_back("/elsewhere/libtowers_cuda.so");
  check_reason(
      s, Lack::module,
      {"/nowhere/libtowers_cuda.so, /elsewhere/libtowers_cuda.so", "scripts/build --cuda"});
  CHECK(why_not_loadable(s)->lack == Lack::module);
}

TEST_CASE("cuDNN that is missing is named, with the version and what to install") {
  check_reason(with_module(module_file("needs_cudnn")), Lack::library,
               {"libcudnn_of_tests.so.9 cannot be loaded", "cuDNN 9 for CUDA 1", "looked in",
                "libcudnn9-cuda-1", "scripts/build --cuda"});
}

TEST_CASE("A module for a library with more than there is names what lacks") {
  check_reason(with_module(module_file("undefined_symbol")), Lack::damaged,
               {"undefined symbol: cudnnOfTheFuture"});
}

TEST_CASE("A module without the function is damaged") {
  check_reason(with_module(module_file("without_function")), Lack::damaged,
               {"towers_cuda_backend", "build it again"});
}

TEST_CASE("A file that is no library is damaged") {
  test::TemporaryFolder folder;
  const fs::path file = folder.path() / "libtowers_cuda.so";
  for (const char* content : {"", "#!/bin/sh\n", "\177ELF"}) {
    test::write_file(file, content);
    check_reason(with_module(file), Lack::damaged, {file.string(), "build it again"});
  }
}

TEST_CASE("A module of another build is refused and names both builds") {
  check_reason(
      with_module(module_file("other_stamp")), Lack::stale,
      {"libother_stamp.so is of another build (another build)", kModuleStamp, "scripts/build"});
}

TEST_CASE("Errors of the module come as text, whatever it throws") {
  Surroundings s = with_module(module_file("fake_gpus"));
  {
    const FakeGpus error("error");
    check_reason(s, Lack::backend, {"the fake driver is too old"});
    s.visible_devices = "0,0";  // which may be why
    check_reason(s, Lack::backend,
                 {"the fake driver is too old (CUDA_VISIBLE_DEVICES: 0,0", "twice"});
  }
  {
    const FakeGpus memory("memory");
    check_reason(s, Lack::backend, {"out of memory"});
  }
  const FakeGpus number("number");
  check_reason(s, Lack::backend, {"an unknown error"});
}

}  // namespace towers::cuda
