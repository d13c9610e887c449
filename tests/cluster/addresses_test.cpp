// Which addresses servers have, and which ones they are reached by.
#include <catch2/catch.hpp>

#include <netdb.h>

#include <iostream>

#include "tests/cluster/processes.h"
#include "tests/cluster/sockets.h"

using namespace towers::test;
using Catch::Contains;

namespace {

const LinearCluster::Args hundred_steps{"--max_steps=100", "--cluster_timeout=60"};

std::string own_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

struct Lookup {
  bool usable = false;  // this machine can listen there
  bool loopback = true;
};
Lookup look_up(const std::string& host) {
  Lookup result;
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), "0", &hints, &found) != 0) return result;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int probe = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    result.usable = result.usable || ::bind(probe, a->ai_addr, a->ai_addrlen) == 0;
    ::close(probe);
    char text[64] = "";
    ::getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    const std::string number = text;
    result.loopback = result.loopback && (number == "::1" || number.starts_with("127."));
  }
  ::freeaddrinfo(found);
  return result;
}

}  // namespace

TEST_CASE("localhost, IPv6 and the machine's own name are addresses") {
  for (const std::string& host : {std::string("localhost"), std::string("::1"), own_name()}) {
    const Lookup found = look_up(host);
    if (!found.usable) {
      std::cout << "without " << host << ", which this machine cannot listen on" << std::endl;
      continue;
    }
    const TemporaryFolder folder;
    const LinearCluster cluster(1, 1, folder.path(), hundred_steps,
                                host == "::1" ? "[" + host + "]" : host);
    auto ps = cluster.start("ps", 0);
    const ProcessResult server = check_trains(cluster, *ps);
    INFO(server.err);
    const bool named = host == own_name() && host != "localhost";
    CHECK(contains(server.err, "whoever reaches " + cluster.ps_address(0)) == named);
    CHECK(contains(server.err, host + " is the loopback on this machine") ==
          (named && found.loopback));
  }
}

TEST_CASE("a name that nobody knows is an error on the server and a cause on the worker") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), {"--cluster_timeout=1"}, "nobody.invalid");
  const ProcessResult server = cluster.start("ps", 0)->wait();
  CHECK(server.exit_code == 1);
  CHECK_THAT(server.err, Contains(cluster.ps(0) + " cannot listen on its address: "));
  const ProcessResult worker = cluster.start("worker", 0)->wait();
  CHECK(worker.exit_code == 1);
  CHECK_THAT(worker.err, Contains("gave up after 1 s: " + cluster.ps(0) + ": "));
}

TEST_CASE("a server listens on its address alone") {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), hundred_steps);
  auto ps = cluster.start("ps", 0);
  REQUIRE(ps->wait_for_output("is serving"));
  const int port = port_of(cluster.ps_address(0));
  CHECK(Knock("127.0.0.1", port).good());
  CHECK_FALSE(Knock("127.0.0.2", port).good());
  check_trains(cluster, *ps);
}

TEST_CASE("proxies of the environment are not used") {
  ProcessOptions proxies;
  for (const char* name : {"http_proxy", "https_proxy", "grpc_proxy", "all_proxy"})
    proxies.environment.push_back(std::string(name) + "=http://127.0.0.1:9");
  for (const char* name : {"no_proxy", "no_grpc_proxy"})
    proxies.environment.push_back(std::string(name) + "=");
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), with(hundred_steps, {"--cluster_timeout=5"}));
  auto ps = cluster.start("ps", 0, {}, proxies);
  check_trains(cluster, *ps, proxies);
}
