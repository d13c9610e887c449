#pragma once
// An HTTP server on the loopback that answers as a test tells it to: well, badly, or not to the
// end.

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace towers::test {

struct Request {
  std::string method, target;                  // "/file", or a whole address when sent to a proxy
  std::map<std::string, std::string> headers;  // names in lower case

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct Reply {
  static constexpr std::size_t kAll = static_cast<std::size_t>(-1);

  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::size_t send = kAll;    // the connection is cut after that much of the body
  bool stall = false;         // instead of cutting: nothing more comes until the client goes away
  bool mute = false;          // as stall, before the first byte of the head
  std::size_t length = kAll;  // what Content-Length says; kAll: the truth
  bool say_length = true;
};

// How an ordinary file server answers: whole, by range, and by range only if If-Range still holds.
Reply serve_file(const Request& request, const std::string& content,
                 const std::string& etag = "\"v1\"");

class TlsIdentity;

class HttpServer {
 public:
  // Called for each request, with its number from 0 on, by the thread of its connection.
  using Handler = std::function<Reply(const Request&, int)>;

  explicit HttpServer(Handler handler, std::shared_ptr<const TlsIdentity> tls = nullptr);
  ~HttpServer();

  int port() const { return port_; }
  std::string url(const std::string& path) const;
  std::vector<Request> requests() const;  // so far, in order

 private:
  void accept_connections();
  void serve(int socket);

  Handler handler_;
  std::shared_ptr<const TlsIdentity> tls_;
  int port_ = 0, listener_ = -1;  // in the order of their making
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<int> sockets_;  // of live connections
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// A port of the loopback on which nobody listens.
int closed_port();

}  // namespace towers::test
