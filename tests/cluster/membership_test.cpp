// Who is there, by a clock that the tests set.
#include "cluster/membership.h"

#include <catch2/catch.hpp>

using namespace towers::cluster;

namespace {

const Patience patience{.worker_timeout = 10, .cluster_timeout = 300};

Membership with_all(int workers, double now = 0) {
  Membership members(workers, patience, now);
  for (int worker = 0; worker < workers; ++worker) {
    members.join(worker, 100 + static_cast<std::uint64_t>(worker), now);
    members.connected(worker, 100 + static_cast<std::uint64_t>(worker));
  }
  return members;
}

}  // namespace

TEST_CASE("a worker that is silent for worker_timeout is lost, once") {
  Membership members = with_all(2);
  members.heard(0, 100, 5);
  CHECK(members.newly_lost(9.9).empty());
  CHECK(members.newly_lost(10) == std::vector<int>{1});
  CHECK(members.newly_lost(10.1).empty());
  CHECK(members.presence(1) == Presence::lost);
  CHECK(members.expected() == 1);
  CHECK(members.newly_lost(15) == std::vector<int>{0});
}

TEST_CASE("a lost worker comes back, itself or as another process") {
  Membership members = with_all(2);
  members.newly_lost(10);
  members.heard(0, 999, 11);  // nobody's
  CHECK(members.presence(0) == Presence::lost);
  members.heard(0, 100, 11);
  CHECK(members.presence(0) == Presence::present);
  CHECK(members.join(1, 201, 12));
  CHECK(members.is(1, 201));
  CHECK_FALSE(members.is(1, 101));
  members.heard(1, 101, 13);  // the old process says nothing about the new one
  CHECK(members.newly_lost(22) == std::vector<int>{0, 1});
}

TEST_CASE("those whom a new server expects back are lost after worker_timeout, unless they come") {
  Membership members(3, patience, 0);
  members.join(0, 100, 1);
  members.connected(0, 100);
  members.expect_back(2);
  CHECK(members.presence(2) == Presence::present);
  CHECK(members.expected() == 3);
  CHECK(members.join(1, 101, 3));
  members.heard(0, 100, 11);
  CHECK(members.newly_lost(11.9).empty());
  CHECK(members.newly_lost(12) == std::vector<int>{2});
  CHECK(members.expected() == 2);
  CHECK(members.join(2, 202, 20));
  CHECK(members.presence(2) == Presence::present);
}

TEST_CASE("one that was expected back and never came keeps a server as one who is late does") {
  Membership members(2, patience, 0);
  members.join(0, 100, 1);
  members.expect_back(2);
  CHECK(members.newly_lost(12) == std::vector<int>{0, 1});
  members.heard(0, 100, 13);
  CHECK(members.leave(0, 100, 20));  // the other one may have done so before, at the former server
  CHECK_FALSE(members.end(27.9));
  REQUIRE(members.end(28));
  CHECK(members.end(28)->clean);
}

TEST_CASE("one process at a time has a worker's part") {
  Membership members = with_all(1);
  CHECK_FALSE(members.join(0, 200, 1));
  CHECK(members.join(0, 100, 1));  // itself again
  members.connected(0, 100);       // by a second connection
  members.disconnected(0, 100);
  CHECK_FALSE(members.join(0, 200, 2));
  members.disconnected(0, 100);  // killed: no connection is left
  CHECK(members.join(0, 200, 2));
  members.connected(0, 200);
  members.disconnected(0, 100);  // late news of the old process
  CHECK_FALSE(members.join(0, 300, 3));
  CHECK(members.join(0, 300, 12));  // a connection that nobody speaks through
}

TEST_CASE("a process says goodbye for itself, or for one that is gone") {
  Membership members = with_all(1);
  CHECK_FALSE(members.leave(0, 200, 1));
  members.disconnected(0, 100);
  CHECK(members.leave(0, 200, 2));
  CHECK(members.presence(0) == Presence::left);
  CHECK_FALSE(members.leave(0, 200, 3));
}

TEST_CASE("a server must stay for one who comes once more, as long as that one is there") {
  Membership members = with_all(2);
  members.comes_once_more(1, 999);  // nobody's
  CHECK_FALSE(members.must_stay());
  members.comes_once_more(1, 101);
  CHECK(members.must_stay());
  SECTION("it says goodbye") {
    members.leave(1, 101, 1);
  }
  SECTION("it is lost") {
    members.newly_lost(10);
  }
  SECTION("another process takes its part") {
    members.disconnected(1, 101);
    members.join(1, 201, 1);
  }
  CHECK_FALSE(members.must_stay());
}

TEST_CASE("a server ends soon after the last goodbye") {
  Membership members = with_all(2);
  members.leave(0, 100, 20);
  CHECK(members.expected() == 1);
  CHECK_FALSE(members.end(400));  // worker 1 is at work
  members.leave(1, 101, 500);
  CHECK_FALSE(members.end(500.4));
  REQUIRE(members.end(501));
  CHECK(members.end(501)->clean);
}

TEST_CASE("a server stays for those who are late, for less than 10 s") {
  Membership members(2, patience, 0);
  members.join(0, 100, 1);
  members.leave(0, 100, 20);
  CHECK_FALSE(members.end(27));
  REQUIRE(members.end(29.9));
  CHECK(members.end(29.9)->clean);
}

TEST_CASE("a worker lost without goodbye keeps a server until cluster_timeout") {
  Membership members = with_all(2);
  members.leave(0, 100, 1);
  members.newly_lost(10);
  CHECK_FALSE(members.end(300));
  REQUIRE(members.end(301));
  CHECK_FALSE(members.end(301)->clean);
  CHECK(members.end(301)->missing == std::vector<int>{1});
  members.join(1, 200, 302);
  members.leave(1, 200, 303);
  REQUIRE(members.end(310));
  CHECK(members.end(310)->clean);
}

TEST_CASE("a server that nobody comes to gives up after cluster_timeout") {
  Membership members(2, patience, 1000);
  CHECK_FALSE(members.end(1299));
  REQUIRE(members.end(1300));
  CHECK_FALSE(members.end(1300)->clean);
  CHECK(members.end(1300)->missing == std::vector<int>{0, 1});
}
