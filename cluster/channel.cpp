#include "cluster/channel.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <mutex>

#include "cluster/wire.h"

namespace towers::cluster {

namespace {

std::mutex g_mutex;
std::function<void(const std::string&)> g_failed_handshake;

void log_line(gpr_log_func_args* line) {
  const std::string text = line->message;
  const std::size_t start = text.find("Handshake failed");
  if (start == std::string::npos) return;
  const std::lock_guard lock(g_mutex);
  if (g_failed_handshake) g_failed_handshake(text.substr(start));
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Security& security) {
  if (!security.has_tls()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = security.authority,
                               .pem_private_key = security.key,
                               .pem_cert_chain = security.certificate});
}

}  // namespace

void take_over_grpc_log(const std::function<void(const std::string&)>& failed_handshake) {
  const std::lock_guard lock(g_mutex);
  g_failed_handshake = failed_handshake;
  gpr_set_log_function(log_line);
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Security& security) {
  if (!security.has_tls()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = security.authority;
  options.pem_key_cert_pairs = {{security.key, security.certificate}};
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::Channel> open_channel(const std::string& address, const Patience& patience,
                                            const Security& security) {
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
  return grpc::CreateCustomChannel("dns:///" + address, channel_credentials(security), arguments);
}

std::string short_cause(const grpc::Status& status) {
  const std::string& text = status.error_message();
  if (text.empty()) return "the connection has ended";
  const std::size_t colon = text.rfind(": ");
  const std::string cause = colon == std::string::npos ? text : text.substr(colon + 2);
  if (cause == "Failed parsing HTTP/2" || cause == "Trying to connect an http1.x server")
    return "another program answers there, no parameter server";
  if (cause == "connection attempt timed out before receiving SETTINGS frame")
    return "takes the connection, but says nothing: it is stopped, or another program";
  // Not final: what forwards a port closes too, as long as nobody is behind it.
  if (cause == "Socket closed")
    return "closes the connection; its log says why where it wants other TLS files";
  return cause;
}

std::string final_refusal(const std::string& cause) {
  const auto holds = [&](const char* part) { return cause.find(part) != std::string::npos; };
  if (holds("certificate verify failed"))
    return "shows a certificate that --tls_ca does not accept: of another authority, or out of "
           "date; give all tasks certificates of one authority";
  if (holds("is not in peer certificate"))
    return "shows a certificate of another host (" + cause +
           "); give it one for its address in --ps_hosts";
  if (holds("wrong version number"))
    return "speaks without TLS; give it --tls_cert, --tls_key and --tls_ca too";
  return "";
}

}  // namespace towers::cluster
