// Addresses and tasks, as typed.
#include "cluster/cluster_spec.h"

#include <catch2/catch.hpp>

#include "core/error.h"

using namespace towers::cluster;
using Catch::Contains;

TEST_CASE("names, numbers and IPv6 addresses are taken") {
  const ClusterSpec cluster =
      parse_cluster("localhost:2222,[::1]:2223,node-1.site:80", "10.0.0.1:1");
  CHECK(cluster.servers() == 3);
  CHECK(cluster.workers() == 1);
  CHECK(host_of(cluster.ps_hosts[1]) == "::1");
  CHECK(port_of(cluster.ps_hosts[1]) == "2223");
  CHECK(host_of(cluster.ps_hosts[2]) == "node-1.site");
  CHECK(ps_name(cluster, 1) == "ps 1 ([::1]:2223)");
  CHECK(worker_name(cluster, 0) == "worker 0 (10.0.0.1:1)");
}

TEST_CASE("what is no address is an error that names the flag") {
  for (const std::string bad :
       {"localhost", "localhost:", ":2222", "localhost:0", "localhost:65536", "localhost:22x",
        "localhost:0222", "a b:1", " a:1", "::1:2222", "unix:/tmp/x:1", "[]:1", "http://a:1"}) {
    INFO(bad);
    CHECK_THROWS_WITH(parse_cluster("a:1," + bad, "b:1"),
                      Contains("--ps_hosts: '" + bad + "' is not host:port") &&
                          Contains("ports from 1 to 65535") && Contains("[::1]:2222"));
    CHECK_THROWS_AS(parse_cluster("a:1", bad), towers::UsageError);
  }
  CHECK_THROWS_WITH(parse_cluster("a:1,", "b:1"), Contains("'' is not host:port"));
  CHECK_THROWS_WITH(parse_cluster("", "b:1"), Contains("--ps_hosts is empty"));
  CHECK_THROWS_WITH(parse_cluster("a:1", ""), Contains("--worker_hosts is empty"));
}

TEST_CASE("an address that occurs twice is an error that names it") {
  CHECK_THROWS_WITH(parse_cluster("a:1,b:1,a:1", "c:1"), Contains("a:1 occurs twice"));
  CHECK_THROWS_WITH(parse_cluster("a:1", "c:1,a:1"), Contains("a:1 occurs twice"));
  CHECK_THROWS_WITH(parse_cluster("node-A:1", "NODE-a:1"), Contains("node-a:1 occurs twice"));
}

TEST_CASE("a task is one of the lists") {
  const ClusterSpec cluster = parse_cluster("a:1", "b:1,c:1");
  CHECK(parse_task(cluster, "ps", 0).job == Job::ps);
  CHECK(parse_task(cluster, "worker", 1).index == 1);
  CHECK_THROWS_WITH(parse_task(cluster, "worker", 2),
                    Contains("--task_index=2") && Contains("has 2 entries, so it is 0 to 1"));
  CHECK_THROWS_WITH(parse_task(cluster, "ps", 1), Contains("has 1 entry, so it is 0"));
  CHECK_THROWS_WITH(parse_task(cluster, "chief", 0),
                    Contains("--job_name=chief: unknown") && Contains("ps or worker"));
  CHECK_THROWS_WITH(parse_task(cluster, "", 0), Contains("--job_name is missing"));
}

TEST_CASE("which hosts reach this machine alone") {
  CHECK(is_loopback("localhost"));
  CHECK(is_loopback("127.0.1.1"));
  CHECK(is_loopback("::1"));
  CHECK_FALSE(is_loopback("10.0.0.1"));
  CHECK_FALSE(is_loopback("node1"));
}
