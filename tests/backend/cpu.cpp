// The CPU's rows of the suite: every vector target that this processor runs, with every way to
// compute a convolution.

#include "cpu/simd.h"  // before Highway's own headers

#include "cpu/backend.h"
#include "tests/backend/under_test.h"

namespace towers::test {
namespace {

BackendUnderTest row(const cpu::Options& options, const std::string& convolution) {
  BackendUnderTest row;
  row.name = "cpu " + options.simd + ", " + std::to_string(options.devices) + " devices, " +
             convolution + " convolution";
  row.make = [options] { return cpu::make_backend(options); };
  row.options.convolution = convolution;
  // Winograd's transforms add up what they have multiplied by up to 5.25 and cancel most of it: in
  // the smallest of the suite's nets that has cost 1.4e-5 (winograd2) and 2.7e-5 (winograd4).
  if (convolution != "direct") {
    row.tolerance = convolution == "winograd2" ? 2e-5 : 4e-5;
    row.flips = true;
  }
  return row;
}

}  // namespace

BackendList backends_under_test() {
  BackendList list;
  for (const cpu::SimdTarget target : cpu::available_targets())
    for (const char* convolution : {"direct", "winograd4", "winograd2"}) {
      list.backends.push_back(row({2, 1, hwy::TargetName(target)}, convolution));
      list.backends.back().thorough = target == cpu::available_targets().front();
    }
  list.backends.push_back(row({5, 3, "auto"}, "auto"));
  return list;
}

}  // namespace towers::test
