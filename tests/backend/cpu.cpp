// The CPU's rows of the suite: every vector target that this processor runs.

#include "cpu/simd.h"  // before Highway's own headers

#include "cpu/backend.h"
#include "tests/backend/under_test.h"

namespace towers::test {

BackendList backends_under_test() {
  BackendList list;
  const auto add = [&](const std::string& name, const cpu::Options& options) {
    list.backends.push_back(
        {.name = name, .make = [options] { return cpu::make_backend(options); }});
  };
  for (const cpu::SimdTarget target : cpu::available_targets()) {
    const std::string name = hwy::TargetName(target);
    add("cpu " + name, {.threads = 2, .devices = 1, .simd = name});
  }
  list.backends.front().thorough = true;
  add("cpu, 3 devices", {.threads = 5, .devices = 3, .simd = "auto"});
  return list;
}

}  // namespace towers::test
