// Which GPU has which towers of a run.

#include "cuda/spread.h"

#include <catch2/catch.hpp>

namespace towers::cuda {
namespace {

std::vector<std::vector<int>> towers_of(const Spread& spread) {
  std::vector<std::vector<int>> towers;
  for (const Spread::Gpu& gpu : spread.gpus) towers.push_back(gpu.towers);
  return towers;
}

TEST_CASE("towers are numbered over processes, and their GPUs as well") {
  // Three processes with three towers each: on GPUs 0 and 1, on 2 alone, on 3, 4 and 5.
  const std::vector<int> devices = {0, 1, 0, 2, 2, 2, 3, 4, 5};
  const Spread second = spread_towers(devices, 3, 1);
  CHECK(towers_of(second) == std::vector<std::vector<int>>{{0, 2}, {1}, {3, 4, 5}, {6}, {7}, {8}});
  CHECK(second.towers == 9);
  CHECK(second.most == 3);
  CHECK(second.first_gpu == 2);
  CHECK(second.own_gpus == 1);
  CHECK(second.first_tower == 3);
  CHECK(second.own_towers == 3);
  const Spread third = spread_towers(devices, 3, 2);
  CHECK(third.first_gpu == 3);
  CHECK(third.own_gpus == 3);
  CHECK(third.gpus[4].device == 4);
  CHECK(towers_of(third) == towers_of(second));
}

TEST_CASE("equal numbers of GPUs in two processes are different GPUs") {
  // On two machines, or each sees GPUs of its own.
  const Spread spread = spread_towers({0, 1, 0, 1}, 2, 0);
  CHECK(towers_of(spread) == std::vector<std::vector<int>>{{0}, {1}, {2}, {3}});
  CHECK(spread.most == 1);
  CHECK(spread.own_gpus == 2);
}

}  // namespace
}  // namespace towers::cuda
