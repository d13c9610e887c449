#pragma once
// A worker's connection to one server: the stream, and signs of life beside it.

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cluster/membership.h"
#include "cluster/security.h"
#include "protos/parameter_server.grpc.pb.h"

namespace towers::cluster {

class Link {
 public:
  Link(const std::string& address, const Patience& patience, const Security& security);

  // Whether there is a stream. Opens one where there is none, waiting a moment for the connection.
  bool open();
  bool is_open() const { return stream_ != nullptr; }
  // False: the stream is broken, and closed; cause() says why.
  bool write(const wire::Request& request);
  bool read(wire::Reply& reply);
  void close();
  const std::string& cause() const { return cause_; }
  // The server does not take this task for one of the cluster.
  bool unauthorized() const { return unauthorized_; }

  // From any thread: a sign of life, the last one, and the end of what waits in the stream.
  // A sign of life brings the server's session, or nothing from one that does not answer.
  std::optional<std::uint64_t> beat(const wire::Presence& presence, double seconds);
  void goodbye(const wire::Presence& presence);
  void cancel();

 private:
  void broken();
  void note(const grpc::Status& status);
  void prepare(grpc::ClientContext& context) const;

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wire::ParameterServer::Stub> stub_;
  std::mutex mutex_;  // over the exchange of context_
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<wire::Request, wire::Reply>> stream_;
  std::string token_;
  std::string cause_ = "no connection yet";
  bool unauthorized_ = false;
};

}  // namespace towers::cluster
