// The measured limits of the processor: that something was measured; how much it is, is not ours.
#include "cpu/peak.h"

#include "core/error.h"
#include "cpu/available_threads.h"
#include "tests/cpu/support.h"

using namespace towers::cpu;

TEST_CASE("arithmetic and memory are measured on every vector target") {
  test::for_each_target([](SimdTarget target) {
    const Peak peak = measure_peak({.threads = 2, .devices = 1, .simd = hwy::TargetName(target)});
    // Slower than any machine, faster than none.
    CHECK(peak.flops > 1e6);
    CHECK(peak.flops < 1e15);
    CHECK(peak.bytes > 1e6);
    CHECK(peak.bytes < 1e15);
  });
  CHECK_THROWS_AS(measure_peak({.simd = "ABACUS"}), towers::UsageError);
}

TEST_CASE("the threads of all devices are measured at once") {
  // Each has a thread of its own: one more than there are processors to keep them on.
  const int devices = static_cast<int>(allowed_processors().size()) + 1;
  CHECK_THROWS_AS(measure_peak({.threads = 1, .devices = devices, .pin_threads = true}),
                  towers::UsageError);
  CHECK(measure_peak({.threads = 1, .devices = devices}).flops > 1e6);
}
