#pragma once
// One worker's stream at a server.

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/host.h"
#include "protos/parameter_server.pb.h"

namespace towers::cluster {

class Session {
 public:
  using Stream = grpc::ServerReaderWriterInterface<wire::Reply, wire::Request>;

  // cancelled: whether the stream is broken, so that nobody waits for an answer any more.
  Session(Host& host, Stream& stream, std::function<bool()> cancelled)
      : host_(host), stream_(stream), cancelled_(std::move(cancelled)) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Answers the next message. False: the stream has ended, or the session is over.
  bool answer_next() { return stream_.Read(&request_) && answer(); }

 private:
  bool answer();
  bool reply(wire::Reply::Kind kind, const std::string& message = {});
  bool refuse(const std::string& why);
  bool send_state();
  // A sign of life; false, with an answer, for one that has no part in the training any more.
  bool still_member();

  bool hello();
  std::string why_refused(int worker, const Settings& settings) const;
  // Why not now; empty: joined.
  std::string join(int worker, std::uint64_t process, const Settings& settings);

  // Whether the chunk lies behind those before it, and the last one ends all `size` values.
  bool is_next_chunk(std::uint64_t size, std::size_t bytes_per_value);
  bool initialize();
  bool pull();
  bool take_gradient_chunk();
  bool push();
  // False: the worker is gone, or the server ends.
  bool wait_for_update(std::unique_lock<std::mutex>& lock);
  // The variables as they are now. Takes the lock over, and gives it back before anything is sent.
  bool answer_values(std::unique_lock<std::mutex>& lock);

  Host& host_;
  Stream& stream_;
  const std::function<bool()> cancelled_;
  int worker_ = -1;  // before its HELLO
  std::uint64_t process_ = 0;
  std::uint64_t size_ = 0;      // values of the shard, by its HELLO
  std::uint64_t received_ = 0;  // values of the variables or gradient that is coming in
  std::vector<float> incoming_, outgoing_;
  std::vector<std::uint16_t> halves_;  // outgoing_ as bfloat16
  wire::Request request_;
  wire::Reply reply_;
};

}  // namespace towers::cluster
