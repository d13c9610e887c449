// Which vector target runs.

#include "cpu/simd.h"

#include <catch2/catch.hpp>

#include "core/error.h"
#include "cpu/backend.h"
#include "cpu/kernels.h"
#include "tests/cpu/support.h"

namespace towers::cpu::test {
namespace {

TEST_CASE("every kernel comes from the target asked for") {
  // Each table carries the target that its file was compiled for.
  for_each_target([](SimdTarget target) {
    const Kernels kernels(target);
    CHECK(kernels.target() == target);
    CHECK(kernels.gemm.target == target);
    CHECK(kernels.pool.target == target);
    CHECK(kernels.norm.target == target);
    CHECK(kernels.update.target == target);
    CHECK(kernels.average.target == target);
    CHECK(kernels.bf16.target == target);
    CHECK(kernels.winograd2.target == target);
    CHECK(kernels.winograd4.target == target);
    CHECK(kernels.narrow_winograd4.target == target);
  });
}

TEST_CASE("targets differ in their code") {
  const std::vector<SimdTarget> targets = available_targets();
  REQUIRE_FALSE(targets.empty());
  for (std::size_t i = 1; i < targets.size(); ++i) {
    CHECK(gemm_kernels(targets[i]).gemm != gemm_kernels(targets[0]).gemm);
    CHECK(gemm_kernels(targets[i]).panel <= gemm_kernels(targets[0]).panel);
    CHECK(winograd_kernels(targets[i], 4).transform_image !=
          winograd_kernels(targets[0], 4).transform_image);
  }
}

// Kernels choose rows of a tile and shifts of registers by the target's name.
TEST_CASE("a version of Highway that knows more kinds of AVX-512 still compiles for AVX3") {
  for_each_target([](SimdTarget target) {
    const std::string name = hwy::TargetName(target);
    CHECK(name.find("AVX3_") == std::string::npos);
    CHECK(name.find("AVX10") == std::string::npos);
  });
}

TEST_CASE("a backend runs the target that its options name, and says so") {
  for_each_target([](SimdTarget target) {
    const std::string name = hwy::TargetName(target);
    Options options;
    options.threads = 2;
    options.simd = name;
    CHECK(make_backend(options)->description() == "CPU, " + name + ", 2 threads");
  });
}

TEST_CASE("auto is the best target") {
  CHECK(find_target("auto") == available_targets().front());
}

TEST_CASE("a target that is not there is an error that names those that are") {
  for (const std::string name : {"AVX9", "avx2", ""}) {
    Options options;
    options.simd = name;
    CHECK_THROWS_AS(make_backend(options), UsageError);
    for_each_target([&](SimdTarget target) {
      CHECK_THROWS_WITH(make_backend(options), Catch::Contains("--simd=" + name + " ") &&
                                                   Catch::Contains(hwy::TargetName(target)));
    });
  }
}

}  // namespace
}  // namespace towers::cpu::test
