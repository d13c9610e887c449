// The CPU's rows of the suite: every vector target that this processor runs, with every way to
// compute a convolution.

#include "cpu/simd.h"  // before Highway's own headers

#include <cmath>

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

// Doubles, seen as floats: those round by 6e-8.
BackendUnderTest fp64_row() {
  BackendUnderTest row{.name = "cpu, fp64", .make = [] { return cpu::make_backend({2}); }};
  row.options.precision = Precision::fp64;
  row.tolerance = 2e-7;
  row.resumes_exactly = false;  // variables pass through floats
  row.thorough = true;
  return row;
}

// bf16 has 8 significant bits: an operand is off by u = 2^-8 of itself at most.
BackendUnderTest bf16_row(const std::string& convolution) {
  constexpr double kRounding = 1.0 / 256;
  BackendUnderTest row{.name = "cpu, bf16, " + convolution + " convolution",
                       .make = [] { return cpu::make_backend({2}); }};
  row.options.precision = Precision::bf16;
  row.options.convolution = convolution;
  // The reference rounds the same operands. What is left are those that fp32's sums bring to the
  // other side of a tie: in a tensor of a few values, one of them.
  // Winograd's sums, less exact, have more of those.
  row.tolerance = convolution == "winograd4" ? 2 * kRounding : kRounding;
  // TensorFlow's are not rounded. Two operands of each product are, in five layers, one after the
  // other: off by 2 * kRounding each at most, by less than half of that on average.
  row.golden_tolerance = 5 * kRounding;
  // About as large a share of relu and pool decisions lies within that error of the other choice,
  // and each that flips takes its whole part of a gradient with it: the norm has the root of it.
  row.golden_gradient_tolerance = std::sqrt(row.golden_tolerance);
  row.flips = true;
  row.thorough = true;
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
  list.backends.push_back(fp64_row());
  // "auto" is oneDNN where there is one (tests/cpu/bf16_test.cpp), the others are emulated.
  for (const char* convolution : {"auto", "direct", "winograd4"})
    list.backends.push_back(bf16_row(convolution));
  return list;
}

}  // namespace towers::test
