#pragma once
// How this process uses gRPC: settings of connections that both sides need, and its words in ours.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "cluster/membership.h"

namespace towers::cluster {

// Call before anything of gRPC: its own log lines go nowhere, since errors come out as ours.
void silence_grpc();

// To one server, by its address of the cluster. Never through a proxy.
std::shared_ptr<grpc::Channel> open_channel(const std::string& address, const Patience& patience);

// "Connection refused" of gRPC's long sentence.
std::string short_cause(const grpc::Status& status);

}  // namespace towers::cluster
