// NVTX's ranges, kept for tests.

#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <utility>

#include "tests/cuda_host/control.h"

namespace towers::cuda_host {
namespace {

std::mutex g_mutex;
std::vector<std::string> g_ranges;

int note(const char* what) {
  const std::lock_guard lock(g_mutex);
  g_ranges.emplace_back(what);
  return 0;
}

}  // namespace

std::vector<std::string> take_ranges() {
  const std::lock_guard lock(g_mutex);
  return std::exchange(g_ranges, {});
}

}  // namespace towers::cuda_host

int nvtxRangePushA(const char* message) {
  return towers::cuda_host::note(message);
}

int nvtxRangePop() {
  return towers::cuda_host::note("end");
}
