#pragma once
// Which backends the suite runs on. Each test program links the same cases with one file that
// defines the list (cpu.cpp).

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"

namespace towers::test {

// Norm-wise relative error allowed per tensor, and per loss: a hundred times float32's rounding, a
// hundredth of what any wrong term would leave.
constexpr double kTolerance = 1e-5;

// What the project promises against TensorFlow (norm-wise relative, per tensor): both sides round
// in float32.
constexpr double kGoldenTolerance = 1e-4;

struct BackendUnderTest {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
  // Precision, determinism and convolution to compile with; a case fills in the rest.
  CompileOptions options{};
  double tolerance = kTolerance;  // wider only with a reason written where the row is
  // Against TensorFlow's values, which are fp32's.
  double golden_tolerance = kGoldenTolerance;
  double golden_gradient_tolerance = kGoldenTolerance;
  // Whether a run that starts from another one's variables goes on with its bytes.
  bool resumes_exactly = true;
  // Rounds otherwise than TensorFlow's direct convolution, so that some relu and pool decisions
  // flip even where those of a direct convolution do not.
  bool flips = false;
  bool thorough = false;  // also runs the cases that take seconds
};

struct BackendList {
  std::vector<BackendUnderTest> backends;
  std::string why_none;  // where there are none: the reason that a skipped case gives
};
BackendList backends_under_test();

// Calls f(row, backend) for each backend; without any, skips the case.
void for_each_backend(const std::function<void(const BackendUnderTest& row, Backend& backend)>& f);
// The same for rows that are thorough.
void for_each_thorough_backend(
    const std::function<void(const BackendUnderTest& row, Backend& backend)>& f);

}  // namespace towers::test
