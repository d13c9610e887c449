#include "cluster/link.h"

#include <chrono>

#include "cluster/channel.h"

namespace towers::cluster {
namespace {

std::chrono::system_clock::time_point after_ms(int milliseconds) {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(milliseconds);
}

constexpr int kConnectMs = 300;
constexpr int kGoodbyeMs = 1000;

}  // namespace

Link::Link(const std::string& address, const Patience& patience, const Security& security)
    : channel_(open_channel(address, patience, security)),
      stub_(wire::ParameterServer::NewStub(channel_)),
      token_(security.token) {}

void Link::prepare(grpc::ClientContext& context) const {
  if (!token_.empty()) context.AddMetadata(kTokenHeader, token_);
}

void Link::note(const grpc::Status& status) {
  unauthorized_ = status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    cause_ = "no answer";
  else
    cause_ = unauthorized_ ? status.error_message() : short_cause(status);
}

bool Link::open() {
  if (stream_) return true;
  if (!channel_->WaitForConnected(after_ms(kConnectMs))) {
    // A call is what tells the cause.
    grpc::ClientContext context;
    prepare(context);
    context.set_deadline(after_ms(kConnectMs));
    wire::Presence nobody;
    wire::Pulse answer;
    nobody.set_worker(~0U);
    const grpc::Status status = stub_->Beat(&context, nobody, &answer);
    if (!status.ok()) note(status);
    return false;
  }
  const std::lock_guard lock(mutex_);
  context_ = std::make_unique<grpc::ClientContext>();
  prepare(*context_);
  stream_ = stub_->Train(context_.get());
  return true;
}

bool Link::write(const wire::Request& request) {
  if (!stream_) return false;
  if (stream_->Write(request)) return true;
  broken();
  return false;
}

bool Link::read(wire::Reply& reply) {
  if (!stream_) return false;
  if (stream_->Read(&reply)) return true;
  broken();
  return false;
}

void Link::broken() {
  note(stream_->Finish());
  const std::lock_guard lock(mutex_);
  stream_.reset();
  context_.reset();
}

void Link::close() {
  if (!stream_) return;
  cancel();
  broken();
}

std::optional<std::uint64_t> Link::beat(const wire::Presence& presence, double seconds) {
  grpc::ClientContext context;
  prepare(context);
  context.set_deadline(after_ms(static_cast<int>(seconds * 1000)));
  wire::Pulse answer;
  if (!stub_->Beat(&context, presence, &answer).ok()) return {};
  return answer.session();
}

void Link::goodbye(const wire::Presence& presence) {
  grpc::ClientContext context;
  prepare(context);
  context.set_deadline(after_ms(kGoodbyeMs));
  wire::Pulse answer;
  (void)stub_->Goodbye(&context, presence, &answer);  // a server that is gone needs none
}

void Link::cancel() {
  const std::lock_guard lock(mutex_);
  if (context_) context_->TryCancel();
}

}  // namespace towers::cluster
