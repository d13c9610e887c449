#include "cluster/service.h"

#include <exception>
#include <new>

#include "cluster/channel.h"
#include "cluster/session.h"

namespace towers::cluster {

grpc::Status Service::check(const grpc::ServerContext& context) {
  const std::string& token = host_.options.security.token;
  const auto sent = context.client_metadata().find(kTokenHeader);
  // Who brings a token to a server without one thinks that strangers are kept out.
  const bool accepted = sent == context.client_metadata().end()
                            ? token.empty()
                            : equal_secrets(token, {sent->second.data(), sent->second.size()});
  if (accepted) return grpc::Status::OK;
  const std::lock_guard lock(host_.mutex);
  if (host_.now() >= next_warning_) {
    host_.hooks.warning(
        host_.name() + ": refused " + context.peer() +
        (token.empty() ? ", which has a token, unlike this server" : ", which lacks the token"));
    next_warning_ = host_.now() + 10;
  }
  return {grpc::StatusCode::UNAUTHENTICATED,
          host_.name() + (token.empty() ? " was started without a token" : " wants another token") +
              "; give all tasks the same --cluster_token_file"};
}

grpc::Status Service::Train(grpc::ServerContext* context,
                            grpc::ServerReaderWriter<wire::Reply, wire::Request>* stream) {
  if (const grpc::Status status = check(*context); !status.ok()) return status;
  try {
    Session session(host_, *stream, [context] { return context->IsCancelled(); });
    while (session.answer_next()) {
    }
  } catch (const std::bad_alloc&) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, host_.name() + " is out of memory"};
  } catch (const std::exception& error) {
    return {grpc::StatusCode::INTERNAL, error.what()};
  }
  return grpc::Status::OK;
}

grpc::Status Service::Beat(grpc::ServerContext* context, const wire::Presence* request,
                           wire::Pulse* reply) {
  if (const grpc::Status status = check(*context); !status.ok()) return status;
  if (!is_worker(*request)) return grpc::Status::OK;
  const std::lock_guard lock(host_.mutex);
  host_.heard(static_cast<int>(request->worker()), request->process());
  if (request->comes_once_more())
    host_.members.comes_once_more(static_cast<int>(request->worker()), request->process());
  reply->set_session(host_.parameters.session());
  return grpc::Status::OK;
}

grpc::Status Service::Goodbye(grpc::ServerContext* context, const wire::Presence* request,
                              wire::Pulse*) {
  if (const grpc::Status status = check(*context); !status.ok()) return status;
  if (!is_worker(*request)) return grpc::Status::OK;
  const std::lock_guard lock(host_.mutex);
  host_.leave(static_cast<int>(request->worker()), request->process());
  return grpc::Status::OK;
}

}  // namespace towers::cluster
