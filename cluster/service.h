#pragma once
// The gRPC service over a Host.

#include <grpcpp/grpcpp.h>

#include "cluster/host.h"
#include "protos/parameter_server.grpc.pb.h"

namespace towers::cluster {

class Service final : public wire::ParameterServer::Service {
 public:
  explicit Service(Host& host) : host_(host) {}

  grpc::Status Train(grpc::ServerContext* context,
                     grpc::ServerReaderWriter<wire::Reply, wire::Request>* stream) override;
  grpc::Status Beat(grpc::ServerContext* context, const wire::Presence* request,
                    wire::Pulse* reply) override;
  grpc::Status Goodbye(grpc::ServerContext* context, const wire::Presence* request,
                       wire::Pulse* reply) override;

 private:
  bool is_worker(const wire::Presence& who) const {
    return who.worker() < static_cast<std::uint32_t>(host_.options.cluster.workers());
  }

  // OK, or the refusal of a peer whose token is another one, or none, which is logged.
  grpc::Status check(const grpc::ServerContext& context);

  Host& host_;
  double next_warning_ = 0;  // a stranger must not fill the log
};

}  // namespace towers::cluster
