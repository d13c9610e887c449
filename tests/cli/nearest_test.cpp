#include "cli/nearest.h"

#include <catch2/catch.hpp>

using towers::cli::edit_distance;
using towers::cli::nearest;

TEST_CASE("the edit distance counts insertions, deletions, replacements and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("abc", "abc") == 0);
  CHECK(edit_distance("abc", "axc") == 1);
  CHECK(edit_distance("abc", "ac") == 1);
  CHECK(edit_distance("abc", "abxc") == 1);
  CHECK(edit_distance("abc", "acb") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  // A swap's letters are not edited again: 2 with that, 3 without.
  CHECK(edit_distance("ca", "abc") == 3);
}

TEST_CASE("the nearest name is one that could have been meant") {
  const std::vector<std::string> names{"batch_size", "seed", "quiet", "num_gpus", "learning_rate"};
  CHECK(nearest("batchsize", names) == "batch_size");
  CHECK(nearest("BATCH-SIZE", names) == "batch_size");
  CHECK(nearest("sede", names) == "seed");
  CHECK(nearest("gpus", names) == "num_gpus");
  CHECK(nearest("lr", names) == "learning_rate");
  CHECK(nearest("seed", names) == "seed");
  CHECK(nearest("xy", names).empty());
  CHECK(nearest("", names).empty());
  CHECK(nearest("unrelated", names).empty());
  CHECK(nearest(std::string(100000, 'a'), names).empty());
  CHECK(nearest("seed", {}).empty());
  // Two edits, but not a letter in common.
  CHECK(nearest("xy", {"ab"}).empty());
}

TEST_CASE("of names that are as near the first is taken") {
  CHECK(nearest("max_st", {"max_sta", "max_stb"}) == "max_sta");
}
