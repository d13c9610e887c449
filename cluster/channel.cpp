#include "cluster/channel.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <mutex>

#include "cluster/wire.h"

namespace towers::cluster {

void silence_grpc() {
  static std::once_flag once;
  std::call_once(once, [] { gpr_set_log_function([](gpr_log_func_args*) {}); });
}

std::shared_ptr<grpc::Channel> open_channel(const std::string& address, const Patience& patience) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestMessage);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A server whose machine is gone sends nothing, not even an end.
  const int patience_ms = std::max(1000, static_cast<int>(patience.worker_timeout * 1000));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, patience_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, patience_ms);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return grpc::CreateCustomChannel("dns:///" + address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

std::string short_cause(const grpc::Status& status) {
  const std::string& text = status.error_message();
  if (text.empty()) return "the connection has ended";
  const std::size_t colon = text.rfind(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

}  // namespace towers::cluster
