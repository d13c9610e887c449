#pragma once
// A server spoken to without our own client.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "protos/parameter_server.grpc.pb.h"

namespace towers::test {

inline std::unique_ptr<cluster::wire::ParameterServer::Stub> stub_of(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return cluster::wire::ParameterServer::NewStub(grpc::CreateCustomChannel(
      "dns:///" + address, grpc::InsecureChannelCredentials(), arguments));
}

}  // namespace towers::test
