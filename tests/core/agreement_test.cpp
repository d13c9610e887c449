// What ranks tell each other; ranks are threads here.

#include "core/agreement.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/local_ranks.h"

namespace towers {
namespace {

using test::LocalRanks;
using Thread = std::shared_ptr<CommunicationThread>;

TEST_CASE("texts of any length come from all ranks") {
  const std::vector<std::string> texts = {std::string(5000, 'a') + "1", "",
                                          std::string(5000, 'a') + "2"};
  std::vector<std::vector<std::string>> found(3);
  LocalRanks::run(3, [&](const Thread& thread) {
    const auto rank = static_cast<std::size_t>(thread->rank());
    thread->run(
        [&](Collective& collective) { found[rank] = gather_texts(collective, texts[rank]); });
  });
  for (const std::vector<std::string>& all : found) CHECK(all == texts);
}

TEST_CASE("numbers of all ranks come to each") {
  std::vector<std::vector<std::int32_t>> found(3);
  LocalRanks::run(3, [&](const Thread& thread) {
    const int rank = thread->rank();
    thread->run([&](Collective& collective) {
      found[static_cast<std::size_t>(rank)] = agree(collective, 10 * rank);
    });
  });
  for (const std::vector<std::int32_t>& numbers : found)
    CHECK(numbers == std::vector<std::int32_t>{0, 10, 20});
}

// What an agreement throws on each of three ranks, of which `failed` have failed.
std::vector<std::string> thrown(const std::vector<int>& failed, int exit_code) {
  std::vector<std::string> ends(3);
  LocalRanks::run(3, [&](const Thread& thread) {
    const int rank = thread->rank();
    const RankFailure failure{exit_code, "no disk " + std::string(3000, '.'),
                              "rank " + std::to_string(rank)};
    const bool fails = std::find(failed.begin(), failed.end(), rank) != failed.end();
    std::string& end = ends[static_cast<std::size_t>(rank)];
    try {
      thread->run(
          [&](Collective& collective) { agree(collective, 0, fails ? &failure : nullptr); });
    } catch (const UsageError& error) {
      end = std::string("usage: ") + error.what();
    } catch (const Error& error) {
      end = error.what();
    }
    if (!thread->failed()) end += " and goes on";
  });
  return ends;
}

TEST_CASE("what one rank fails of ends all, with its words and its place") {
  const std::string words = "no disk " + std::string(3000, '.');
  CHECK(thrown({2}, 1) == std::vector<std::string>(3, "rank 2: " + words));
  CHECK(thrown({1, 2}, 1) == std::vector<std::string>(3, "rank 1: " + words));
  CHECK(thrown({1}, 2) == std::vector<std::string>(3, "usage: rank 1: " + words));
  // What all have met is nobody's own.
  CHECK(thrown({0, 1, 2}, 1) == std::vector<std::string>(3, words));
}

}  // namespace
}  // namespace towers
