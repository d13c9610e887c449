#include "core/order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

namespace towers {
namespace {

using Order = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("An epoch holds every example once") {
  for (const std::uint32_t size : {0u, 1u, 2u, 3u, 10u, 257u, 50000u}) {
    Order order = epoch_permutation(11, 5, size);
    std::sort(order.begin(), order.end());
    Order all(size);
    std::iota(all.begin(), all.end(), 0u);
    CHECK(order == all);
  }
}

TEST_CASE("The order is a function of seed and epoch alone") {
  CHECK(epoch_permutation(7, 3, 50000) == epoch_permutation(7, 3, 50000));
  CHECK(epoch_permutation(7, 3, 50000) != epoch_permutation(7, 4, 50000));
  CHECK(epoch_permutation(7, 3, 50000) != epoch_permutation(8, 3, 50000));
}

// From an implementation of the same papers in Python's whole numbers: another compiler, library or
// rewrite must not change the order of a run that is resumed.
TEST_CASE("The order is the same everywhere") {
  CHECK(epoch_permutation(7, 0, 10) == Order{4, 5, 6, 1, 3, 8, 9, 0, 7, 2});
  CHECK(epoch_permutation(7, 1, 10) == Order{1, 9, 8, 7, 2, 5, 3, 4, 6, 0});
  CHECK(epoch_permutation(8, 0, 10) == Order{9, 6, 5, 4, 3, 0, 7, 1, 8, 2});
  CHECK(epoch_permutation(7, (1ull << 40) + 3, 10) == Order{2, 7, 6, 0, 5, 4, 3, 1, 8, 9});
  const Order whole = epoch_permutation(7, 3, 50000);
  CHECK(Order(whole.begin(), whole.begin() + 5) == Order{13451, 39723, 41185, 6896, 13029});
  CHECK(Order(whole.end() - 5, whole.end()) == Order{47345, 17503, 1233, 9904, 4766});
}

TEST_CASE("Every permutation is equally likely") {
  constexpr int kDraws = 24000;
  std::map<Order, int> counts;
  for (std::uint64_t epoch = 0; epoch < kDraws; ++epoch) ++counts[epoch_permutation(1, epoch, 4)];
  REQUIRE(counts.size() == 24);
  double chi_square = 0;
  for (const auto& [order, count] : counts)
    chi_square += (count - kDraws / 24.0) * (count - kDraws / 24.0) / (kDraws / 24.0);
  CHECK(chi_square < 49.7);  // 23 degrees of freedom: exceeded once in a thousand seeds
}

}  // namespace towers
