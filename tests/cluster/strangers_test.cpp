// What strangers send to a server's port, while it serves those who belong to it.
#include <catch2/catch.hpp>

#include "tests/cluster/processes.h"
#include "tests/cluster/sockets.h"
#include "tests/cluster/stub.h"

using namespace towers::test;
using Catch::Contains;
namespace wire = towers::cluster::wire;

namespace {

const LinearCluster::Args served_steps{"--max_steps=100", "--cluster_timeout=60"};

// A server, what `bother` does to it, and then a training.
template <class Bother>
void check_serves_on(const Bother& bother) {
  const TemporaryFolder folder;
  const LinearCluster cluster(1, 1, folder.path(), served_steps);
  auto ps = cluster.start("ps", 0);
  REQUIRE(ps->wait_for_output("is serving"));
  bother(cluster.ps_address(0));
  check_trains(cluster, *ps);
}

struct Answer {
  grpc::StatusCode status = grpc::OK;
  std::string told;
};
Answer ask(wire::ParameterServer::Stub& stub, const wire::Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  auto stream = stub.Train(&context);
  stream->Write(request);
  stream->WritesDone();
  Answer answer;
  for (wire::Reply reply; stream->Read(&reply);) answer.told = reply.message();
  answer.status = stream->Finish().error_code();
  return answer;
}

}  // namespace

TEST_CASE("bytes that are no HTTP/2, and connections that say nothing, leave a server alone") {
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  check_serves_on([&](const std::string& address) {
    const Knock silent("127.0.0.1", port_of(address));
    for (const std::string& bytes :
         {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(1 << 20, '\xff'),
          std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), preface,
          preface + std::string("\xff\xff\xff\x00\x00\x00\x00\x00\x01", 9) +
              std::string(1 << 20, 'x')})
      Knock("127.0.0.1", port_of(address)).send(bytes);
    CHECK(silent.good());
  });
}

TEST_CASE("messages that are too large or make no sense are refused, and the server goes on") {
  check_serves_on([](const std::string& address) {
    const auto stub = stub_of(address);

    wire::Request large;
    large.set_kind(wire::Request::HELLO);
    large.set_values(std::string(2 << 20, 'x'));
    CHECK(ask(*stub, large).status == grpc::RESOURCE_EXHAUSTED);

    wire::Request unknown;
    unknown.set_kind(static_cast<wire::Request::Kind>(77));
    CHECK_THAT(ask(*stub, unknown).told, Contains("the first message is no HELLO"));

    wire::Request hello;
    hello.set_kind(wire::Request::HELLO);
    hello.set_version(1);
    CHECK_THAT(ask(*stub, hello).told, Contains("use the same program everywhere"));

    // A sign of life, and a goodbye, of a worker that there is not.
    wire::Presence nobody;
    nobody.set_worker(99);
    wire::Pulse pulse;
    for (const bool leaves : {false, true}) {
      grpc::ClientContext context;
      CHECK(
          (leaves ? stub->Goodbye(&context, nobody, &pulse) : stub->Beat(&context, nobody, &pulse))
              .ok());
    }
  });
}
