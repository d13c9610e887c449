// What is said where several GPUs are used and NCCL is not there, or is one without what is needed
// (TOWERS_NCCL_STUB). DeviceGuard and Stream are not reached.

#include <nccl.h>

#include <catch2/catch.hpp>
#include <string>

#include "core/error.h"
#include "cuda/all_reduce.h"

namespace towers::cuda {

DeviceGuard::DeviceGuard(int) {}
DeviceGuard::~DeviceGuard() {}

namespace {

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
const std::string kNameOfNccl = "libnccl.so." TEXT(NCCL_MAJOR);
const std::string kWantedNccl = TEXT(NCCL_MAJOR) "." TEXT(NCCL_MINOR);

std::string said() {
  try {
    require_nccl();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

#ifdef TOWERS_NCCL_STUB
TEST_CASE("NCCL without a function that is needed is told with the version wanted") {
  for (int time = 0; time < 2; ++time)
    CHECK(said() ==
          kNameOfNccl + " lacks ncclGetUniqueId; install NCCL " + kWantedNccl + " or newer");
}
#else
TEST_CASE("NCCL that is not there is told with its version, the places and what to install") {
  for (int time = 0; time < 2; ++time)
    CHECK(said() == "several GPUs need NCCL " + kWantedNccl + ", and " + kNameOfNccl +
                        " is neither where the system's loader looks (LD_LIBRARY_PATH) nor at "
                        "none; install it (libnccl2 of NVIDIA's repository, or PyPI's "
                        "nvidia-nccl), or train on one GPU, in one process, with --num_gpus=1");
}
#endif

}  // namespace
}  // namespace towers::cuda
