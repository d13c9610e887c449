#pragma once
// How this process uses gRPC: settings of connections that both sides need, and its words in ours.

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "cluster/membership.h"
#include "cluster/security.h"

namespace towers::cluster {

// Call before anything of gRPC: its own log lines go nowhere, since errors come out as ours; but a
// peer whose TLS handshake fails is told of by them alone, and comes out here.
void take_over_grpc_log(const std::function<void(const std::string&)>& failed_handshake);

// To one server, by its address of the cluster. Never through a proxy.
std::shared_ptr<grpc::Channel> open_channel(const std::string& address, const Patience& patience,
                                            const Security& security);

// Of a server: mutual TLS where there are certificates.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const Security& security);

// The header that carries the token.
inline constexpr const char* kTokenHeader = "x-towers-token";

// "Connection refused" of gRPC's long sentence.
std::string short_cause(const grpc::Status& status);

// What is wrong with a server whose TLS handshake ended for `cause`, where another try would end
// the same: "speaks without TLS; ..."; else empty.
std::string final_refusal(const std::string& cause);

}  // namespace towers::cluster
