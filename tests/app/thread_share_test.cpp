// Threads and processors of processes that share them.

#include "app/thread_share.h"

#include <catch2/catch.hpp>

using namespace towers::app;

namespace {

void check(const std::vector<ThreadWish>& wishes, int available, const std::vector<int>& threads) {
  int before = 0;
  for (std::size_t p = 0; p < wishes.size(); ++p) {
    CAPTURE(p, available);
    const ThreadShare share = share_of(wishes, p, available);
    CHECK(share.threads == threads[p]);
    CHECK(share.first == before);
    before += share.threads;
  }
  CHECK(share_of(wishes, 0, available).total == before);
}

}  // namespace

TEST_CASE("processes that share processors take one part after the other") {
  check({{0}}, 8, {8});
  check({{0}, {0}}, 8, {4, 4});
  check({{0}, {0}, {0}}, 8, {2, 3, 3});
  check({{3}, {3}}, 8, {3, 3});
  check({{1}, {0}, {5}}, 8, {1, 3, 5});  // what is told stays as it is told
}

TEST_CASE("more processes than processors have a thread each") {
  check({{0}, {0}, {0}}, 2, {1, 1, 1});
}

TEST_CASE("a process has a thread for each of its devices") {
  check({{1, 3}, {1}, {0, 5}}, 6, {3, 1, 5});
  check({{4, 3}, {}}, 8, {4, 4});
}
