#include "cluster/server.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "cluster/channel.h"
#include "cluster/host.h"
#include "cluster/service.h"
#include "cluster/waiting.h"
#include "cluster/wire.h"
#include "core/error.h"

namespace towers::cluster {
namespace {

constexpr auto kNap = std::chrono::milliseconds(50);
// Where a whole job is told to end at once, its chief still comes for the last checkpoint, and says
// so within this time. With the end of gRPC it is below the 2 s that people are promised of a
// server that nobody waits for.
constexpr double kLastWords = 1.5;
// For answers that are under way.
constexpr auto kClosing = std::chrono::milliseconds(500), kClosingLate = kClosing / 2;

[[noreturn]] void throw_cannot_listen(const ServerOptions& options, const std::string& why,
                                      const std::string& help) {
  throw Error(ps_name(options.cluster, options.index) + " cannot listen on its address: " + why +
              "; " + help);
}

std::string help_for(int error) {
  const std::string another = "or give another one in --ps_hosts";
  switch (error) {
    case EADDRINUSE:
      return "end what uses it, " + another;
    case EACCES:
      return "this user may not have its port; give one from 1024 on in --ps_hosts";
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return "it is none of this machine's; start this task on the machine that has it, " + another;
    default:
      return "make it usable, " + another;
  }
}

bool is_loopback_address(const sockaddr* address) {
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return address->sa_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == 127;
}

// gRPC does not tell why it cannot listen; a socket of ours does. Whether the address reaches this
// machine alone.
bool check_address(const ServerOptions& options) {
  const std::string& address = options.cluster.ps_hosts[static_cast<std::size_t>(options.index)];
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(host_of(address).c_str(), port_of(address).c_str(), &hints, &found);
  if (error != 0)
    throw_cannot_listen(options, ::gai_strerror(error), "correct the host's name in --ps_hosts");
  int reason = 0;
  bool any = false;  // a host name may have addresses of kinds that this machine lacks
  bool loopback = true;
  for (const addrinfo* a = found; a != nullptr && reason != EADDRINUSE; a = a->ai_next) {
    loopback = loopback && is_loopback_address(a->ai_addr);
    const int probe = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    const int on = 1;
    if (probe >= 0) ::setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (probe >= 0 && ::bind(probe, a->ai_addr, a->ai_addrlen) == 0 && ::listen(probe, 1) == 0)
      any = true;
    else
      reason = errno;
    if (probe >= 0) ::close(probe);
  }
  ::freeaddrinfo(found);
  if (!any || reason == EADDRINUSE)
    throw_cannot_listen(options, std::strerror(reason), help_for(reason));
  return loopback;
}

std::unique_ptr<grpc::Server> listen(const ServerOptions& options, const Hooks& hooks,
                                     Service& service) {
  const std::string& address = options.cluster.ps_hosts[static_cast<std::size_t>(options.index)];
  if (check_address(options) && !is_loopback(host_of(address)))
    hooks.warning(ps_name(options.cluster, options.index) + ": " + host_of(address) +
                  " is the loopback on this machine (see /etc/hosts), so workers on others cannot "
                  "reach it; for these name an address of the network in --ps_hosts");
  const int workers = options.cluster.workers();
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(4 * workers + 16);  // a stream that waits for an update holds one
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, server_credentials(options.security), &port);
  builder.RegisterService(&service);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kLargestMessage);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two servers on one port: an error
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // A machine that is gone is noticed by the silence of its worker; this frees the stream.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server || port == 0) {
    if (options.security.has_tls())
      throw Error(ps_name(options.cluster, options.index) +
                  " cannot listen: gRPC does not take the files of --tls_cert, --tls_key and "
                  "--tls_ca, or the address is in use");
    throw_cannot_listen(options, "it is in use", help_for(EADDRINUSE));
  }
  return server;
}

std::string names(const Host& host, const std::vector<int>& workers) {
  std::vector<std::string> all;
  for (int worker : workers) all.push_back(host.name_of(worker));
  return list_of(all, ", ");
}

// One look at the members; true when the work is over. With the lock held.
bool is_over(Host& host, Waiting& waiting) {
  host.notice_losses();
  if (!host.failure.empty()) return true;
  const bool kept = host.options.keep_serving;
  const std::vector<int> absent = host.members.with(Presence::absent);
  const bool idle = static_cast<int>(absent.size()) == host.options.cluster.workers();
  std::vector<Missing> missing;
  if (!kept || !idle)
    for (int worker : absent) missing.push_back({host.name_of(worker), "has not come yet"});
  const std::string line = waiting.look(host.now(), missing);
  if (!line.empty()) host.hooks.info(line);
  const auto end = host.members.end(host.now());
  if (kept) {
    if (!end || idle) return false;
    host.begin_anew();
    host.hooks.info(host.name() + ": the training is over; ready for the next");
    return false;
  }
  if (end && !end->clean)
    host.failure = "gave up waiting for " + names(host, end->missing) + " after " +
                   seconds_text(host.options.patience.cluster_timeout) +
                   "; start it, or give a longer --cluster_timeout";
  return end.has_value();
}

}  // namespace

void serve(const ServerOptions& options, const Hooks& hooks) {
  take_over_grpc_log(
      [hooks, name = ps_name(options.cluster, options.index),
       next = std::chrono::steady_clock::time_point()](const std::string& why) mutable {
        const auto now = std::chrono::steady_clock::now();
        if (now < next) return;  // a stranger must not fill the log
        next = now + std::chrono::seconds(10);
        hooks.warning(name + ": refused a peer: " + why);
      });
  Host host(options, hooks);
  Service service(host);
  const std::unique_ptr<grpc::Server> server = listen(options, hooks, service);
  hooks.info(host.name() + " is serving");
  Waiting waiting(host.name());
  std::optional<double> told;  // to end, since then
  for (;; std::this_thread::sleep_for(kNap)) {
    const std::lock_guard lock(host.mutex);
    if (hooks.stop()) {
      if (!told) told = host.now();
      host.members.newly_lost(host.now());  // whose promise to come is worth nothing
      const bool late = host.now() - *told > kLastWords && !host.members.must_stay();
      if (late || host.members.with(Presence::present).empty()) break;
    } else if (is_over(host, waiting)) {
      break;
    }
  }
  std::string failure;
  {
    const std::lock_guard lock(host.mutex);
    failure = host.failure;
    host.closing = failure.empty();  // otherwise those who wait are told why
  }
  host.changed.notify_all();
  server->Shutdown(std::chrono::system_clock::now() + (told ? kClosingLate : kClosing));
  if (!failure.empty()) throw Error(host.name() + ": " + failure);
}

}  // namespace towers::cluster
