// Which GPUs and processors of a machine each rank takes.

#include "app/gpu_share.h"

#include <catch2/catch.hpp>

namespace towers::app {
namespace {

using Strings = std::vector<std::string>;

std::vector<int> begins_and_end(const Strings& ranks, int count) {
  std::vector<int> borders;
  int end = 0;
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    const GpuShare share = gpu_share_of(ranks, r, count);
    borders.push_back(share.begin);
    end = share.end;
  }
  borders.push_back(end);
  return borders;
}

TEST_CASE("ranks that see the same GPUs share them out in order") {
  CHECK(begins_and_end({"a b c d", "a b c d", "a b c d", "a b c d"}, 4) ==
        std::vector<int>{0, 1, 2, 3, 4});
  CHECK(begins_and_end({"a b c d", "a b c d"}, 4) == std::vector<int>{0, 2, 4});
  CHECK(begins_and_end({"a b c d", "a b c d", "a b c d"}, 4) == std::vector<int>{0, 1, 2, 4});
  CHECK(begins_and_end({"a", "a"}, 1) == std::vector<int>{0, 0, 1});
}

TEST_CASE("ranks that see GPUs of their own take all of them") {
  for (int r = 0; r < 2; ++r) {
    const GpuShare share = gpu_share_of({"a b", "c d"}, r, 2);
    CHECK(share.begin == 0);
    CHECK(share.end == 2);
  }
  // On two machines, alternately.
  const Strings machines = {"a b", "c d", "a b", "c d"};
  CHECK(gpu_share_of(machines, 1, 2).begin == 0);
  CHECK(gpu_share_of(machines, 2, 2).begin == 1);
  CHECK(gpu_share_of(machines, 3, 2).end == 2);
}

TEST_CASE("a GPU that two ranks would train on is named with both") {
  const RankGpu first{"GPU-1", "41:00"}, second{"GPU-2", "61:00"}, far{"GPU-3", "41:00"};
  CHECK(gpu_used_twice({{"node1", {first, second}}, {"node2", {far}}}).empty());
  const std::string line =
      gpu_used_twice({{"node1", {first}}, {"node2", {far}}, {"node1", {second, first}}});
  CHECK(line.starts_with(
      "rank 0 on node1 and rank 2 on node1 would share GPU-1 (41:00), which NCCL"));
}

TEST_CASE("two parts of one GPU are named as what they are, on one machine alone") {
  const RankGpu first{"MIG-1", "41:00"}, second{"MIG-2", "41:00"}, other{"MIG-3", "61:00"};
  CHECK(gpu_used_twice({{"node1", {first}}, {"node1", {other}}, {"node2", {second}}}).empty());
  CHECK(gpu_used_twice({{"node1", {first}}, {"node1", {other}}, {"node1", {second}}})
            .starts_with("rank 0 on node1 and rank 2 on node1 would train on parts (MIG) of one "
                         "GPU, 41:00, which NCCL refuses; "));
  // Also where two containers give one machine two names.
  CHECK(gpu_used_twice({{"node1", {first}}, {"node2", {first}}})
            .starts_with("rank 0 on node1 and rank 1 on node2 would share MIG-1 (41:00), "));
}

}  // namespace
}  // namespace towers::app
