// What workers send to a parameter server, without the network: messages as gRPC hands them over.
// Each has a byte before it that says whose stream or call it comes by, and a two-byte length.

#include "cluster/service.h"
#include "cluster/session.h"
#include "cluster/wire.h"
#include "tests/fuzz/target.h"

using namespace towers;

namespace {

constexpr std::size_t kStreams = 3;  // of two workers

// One message at a time in, and nothing that waits: the line breaks as soon as an answer takes
// long.
class Line final : public cluster::Session::Stream {
 public:
  cluster::wire::Request* incoming = nullptr;

  void SendInitialMetadata() override {}
  bool NextMessageSize(std::uint32_t* size) override {
    *size = 0;
    return incoming != nullptr;
  }
  bool Read(cluster::wire::Request* request) override {
    if (incoming == nullptr) return false;
    request->Swap(incoming);
    incoming = nullptr;
    return true;
  }
  bool Write(const cluster::wire::Reply& reply, grpc::WriteOptions) override {
    if (reply.kind() == cluster::wire::Reply::NONE) fuzz::fail("a reply of no kind");
    if (reply.ByteSizeLong() > cluster::kLargestMessage) fuzz::fail("a reply that is too large");
    return true;
  }
};

struct Stream {
  explicit Stream(cluster::Host& host) : session(host, line, [] { return true; }) {}
  Line line;
  cluster::Session session;
};

cluster::ServerOptions options() {
  return {.cluster = {.ps_hosts = {"p:1"}, .worker_hosts = {"a:1", "b:1"}},
          .patience = {},
          .security = {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view rest = fuzz::view(bytes, size);
  const auto ignore = [](const std::string&) {};
  cluster::Host host(options(), {.info = ignore, .warning = ignore, .stop = [] { return false; }});
  cluster::Service service(host);
  std::unique_ptr<Stream> streams[kStreams];
  while (!rest.empty()) {
    const std::size_t way = static_cast<unsigned char>(rest.front()) % (kStreams + 2);
    rest.remove_prefix(1);
    const std::string message(fuzz::take_piece(rest, 2));
    if (way < kStreams) {
      cluster::wire::Request request;
      if (!request.ParseFromString(message)) continue;  // gRPC's own business
      // The kept inputs are older than today's version.
      if (request.version() > 1) request.set_version(cluster::kProtocolVersion);
      if (!streams[way]) streams[way] = std::make_unique<Stream>(host);
      streams[way]->line.incoming = &request;
      if (!streams[way]->session.answer_next()) streams[way].reset();
      continue;
    }
    cluster::wire::Presence presence;
    cluster::wire::Pulse pulse;
    grpc::ServerContext context;
    if (!presence.ParseFromString(message)) continue;
    if (way == kStreams)
      (void)service.Beat(&context, &presence, &pulse);
    else
      (void)service.Goodbye(&context, &presence, &pulse);
    const std::lock_guard lock(host.mutex);
    host.notice_losses();
  }
  const std::lock_guard lock(host.mutex);
  const int workers = host.options.cluster.workers();
  if (host.members.expected() < 0 || host.members.expected() > workers ||
      host.parameters.step() < 0)
    fuzz::fail("a server that lost count");
  return 0;
}
