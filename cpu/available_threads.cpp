#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "cpu/backend.h"

namespace towers::cpu {
namespace {

// Processors in the affinity mask, which may be larger than cpu_set_t.
int affinity_threads() {
  for (int processors = CPU_SETSIZE; processors <= CPU_SETSIZE * 64; processors *= 2) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<std::size_t>(processors));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(processors));
    const bool known = mask != nullptr && ::sched_getaffinity(0, bytes, mask) == 0;
    const int count = known ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (known) return count;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int available_threads() {
  return std::max(1, affinity_threads());
}

}  // namespace towers::cpu
