// Stands in for client.cpp and server.cpp where there is no gRPC.

#include "cluster/client.h"
#include "cluster/server.h"
#include "core/error.h"

namespace towers::cluster {
namespace {

[[noreturn]] void throw_not_built() {
  throw Error(
      "this program was built without gRPC, which --ps_hosts needs; install libgrpc++-dev and "
      "protobuf-compiler-grpc, and build again");
}

}  // namespace

class Client::Impl {};

Client::Client(const ClientOptions&, const Hooks&, Restore) {
  throw_not_built();
}
Client::~Client() = default;
std::optional<std::int64_t> Client::pull(std::span<float>) {
  throw_not_built();
}
std::optional<std::int64_t> Client::push(std::span<const float>, std::span<float>) {
  throw_not_built();
}
std::optional<std::int64_t> Client::pull(std::span<float>, std::span<float>) {
  throw_not_built();
}
const Start& Client::start() const {
  throw_not_built();
}
std::uint64_t Client::session() const {
  throw_not_built();
}
bool Client::in_step() const {
  throw_not_built();
}
std::int64_t Client::dropped() const {
  throw_not_built();
}

void serve(const ServerOptions&, const Hooks&) {
  throw_not_built();
}

}  // namespace towers::cluster
