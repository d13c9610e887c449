// The matrices of Winograd's transforms. What the layer does with them is the backend suite's.

#include "cpu/winograd_matrices.h"

#include <catch2/catch.hpp>

#include "cpu/winograd.h"
#include "tests/cpu/support.h"

namespace towers::cpu::test {
namespace {

// output * ((kernel * g) . (input * x)) is the filter: of tap k and input l, output i takes the
// product where l = i + k.
template <class W>
void check_filter() {
  constexpr auto input = W::input();
  constexpr auto kernel = W::kernel();
  constexpr auto output = W::output();
  for (int i = 0; i < W::kOutputs; ++i)
    for (int k = 0; k < W::kKernel; ++k)
      for (int l = 0; l < W::kTile; ++l) {
        double factor = 0;
        for (int j = 0; j < W::kTile; ++j)
          factor += output.at[i][j] * kernel.at[j][k] * input.at[j][l];
        CAPTURE(i, k, l);
        CHECK(factor == Approx(l == i + k ? 1 : 0).margin(1e-12));
      }
}

TEST_CASE("the matrices make a filter") {
  check_filter<Winograd<4, 5>>();
  check_filter<Winograd<2, 5>>();
}

TEST_CASE("rows of a pair of points differ in the sign of every other element") {
  constexpr auto input = Winograd<4, 5>::input();
  constexpr auto kernel = Winograd<4, 5>::kernel();
  for (int row = 1; row < 7; row += 2) {
    for (int j = 0; j < 8; ++j) CHECK(input.at[row + 1][j] == input.at[row][j] * (j % 2 ? -1 : 1));
    for (int j = 0; j < 5; ++j)
      CHECK(kernel.at[row + 1][j] == kernel.at[row][j] * (j % 2 ? -1 : 1));
  }
}

TEST_CASE("the position of sums is that of the powers of one") {
  constexpr auto output = Winograd<4, 5>::output();
  for (int i = 0; i < 4; ++i) CHECK(output.at[i][1] == 1);
  for_each_target([](SimdTarget target) {
    CHECK(winograd_kernels(target, 4).position_of_sums() == 8 + 1);
    CHECK(winograd_kernels(target, 2).position_of_sums() == 6 + 1);
  });
}

}  // namespace
}  // namespace towers::cpu::test
