// Which variable lives where; and what is said while somebody is missing.
#include "cluster/placement.h"

#include <catch2/catch.hpp>

#include <numeric>

#include "cluster/waiting.h"

using namespace towers::cluster;

TEST_CASE("variables go round the servers, global_step first") {
  const std::vector<ModelVariable> variables{{"a", 0, 2}, {"b", 16, 3}, {"c", 32, 1}};
  const auto shards = place(variables, 2, PlacementRule::round_robin);
  REQUIRE(shards.size() == 2);
  CHECK(shards[0].size == 3);  // b, behind global_step
  REQUIRE(shards[1].slices.size() == 2);
  CHECK(shards[1].slices[1].model_offset == 32);
  CHECK(shards[1].slices[1].shard_offset == 2);
  CHECK(place(variables, 1, PlacementRule::round_robin)[0].size == 6);
  CHECK(place(variables, 5, PlacementRule::round_robin)[0].size == 0);
  CHECK(place(variables, 5, PlacementRule::round_robin)[3].size == 1);
}

TEST_CASE("by bytes each variable goes to the server that has least") {
  const std::vector<ModelVariable> variables{{"a", 0, 2}, {"b", 16, 9}, {"c", 32, 3}, {"d", 48, 4}};
  const auto shards = place(variables, 2, PlacementRule::bytes);
  // a to 1, beside global_step; b to 0, which has less; then c and d to 1.
  CHECK(shards[0].size == 9);
  CHECK(shards[1].size == 9);
  REQUIRE(shards[1].slices.size() == 3);
  CHECK(shards[1].slices[2].model_offset == 48);
}

TEST_CASE("shards hold the model's values, without the gaps between") {
  std::vector<float> model(20), back(20), shard(3);
  std::iota(model.begin(), model.end(), 0.0f);
  const auto shards = place({{"a", 1, 2}, {"b", 5, 1}, {"c", 8, 3}}, 2, PlacementRule::round_robin);
  for (const Shard& s : shards) {
    shard.resize(s.size);
    s.gather(model, shard);
    s.scatter(shard, back);
  }
  CHECK(back == std::vector<float>{0, 1, 2, 0, 0, 5, 0, 0, 8, 9, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("a line names the first of many") {
  CHECK(list_of(std::vector<std::string>(8, "a"), ", ") == "a, a, a, a, a, a, a, a");
  CHECK(list_of(std::vector<std::string>(11, "a"), ", ") == "a, a, a, a, a, a, a, a and 3 more");
  CHECK(list_of({{"ps 0 (a:1)", "no answer"}, {"ps 1 (b:1)", "no answer"}}) ==
        "ps 0 (a:1): no answer; ps 1 (b:1): no answer");
}

TEST_CASE("who is missing is said after 2 s, then every 10 s") {
  Waiting waiting("worker 1 (b:1)");
  const std::vector<Missing> missing{{"ps 0 (a:1)", "Connection refused"},
                                     {"ps 1 (a:2)", "no answer"}};
  CHECK(waiting.look(100, missing).empty());
  CHECK(waiting.look(101.9, missing).empty());
  CHECK(waiting.look(102, missing) ==
        "worker 1 (b:1) waits for ps 0 (a:1): Connection refused; ps 1 (a:2): no answer");
  CHECK(waiting.look(111, missing).empty());
  CHECK_FALSE(waiting.look(112, missing).empty());
  CHECK(waiting.waited(112) == 12);
  CHECK(waiting.look(113, {}).empty());
  CHECK(waiting.waited(114) == 0);
  CHECK(waiting.look(115, missing).empty());  // another wait
}
