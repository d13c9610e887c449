#include "http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <sstream>
#include <stdexcept>

#include "data/http_response.h"
#include "tls_identity.h"

namespace towers::test {
namespace {

// A socket on some free port of the loopback.
int bound_socket(int& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no port on the loopback");
  port = ntohs(address.sin_port);
  return fd;
}

std::string read_head(Connection& connection) {
  std::string head;
  char byte = 0;
  while (!head.ends_with("\r\n\r\n") && connection.read(&byte, 1) == 1) head += byte;
  return head;
}

Request parse(const std::string& head) {
  Request request;
  std::istringstream lines(head);
  std::string line;
  std::getline(lines, line);
  std::istringstream(line) >> request.method >> request.target;
  while (std::getline(lines, line) && line.size() > 1) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers[name] = line.substr(colon + 2, line.size() - colon - 3);  // "\r" goes too
  }
  return request;
}

std::string head_of(const Reply& reply) {
  std::string head = "HTTP/1.1 " + towers::data::describe_status(reply.status) + "\r\n";
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  if (reply.say_length)
    head += "Content-Length: " +
            std::to_string(reply.length == Reply::kAll ? reply.body.size() : reply.length) + "\r\n";
  return head + "Connection: close\r\n\r\n";
}

void wait_for_the_client_to_go(Connection& connection) {
  char byte = 0;
  while (connection.read(&byte, 1) > 0) {
  }
}

}  // namespace

Reply serve_file(const Request& request, const std::string& content, const std::string& etag) {
  Reply reply;
  reply.headers = {{"ETag", etag}, {"Content-Type", "application/x-gzip"}};
  reply.body = content;
  const std::string range = request.header("range"), condition = request.header("if-range");
  if (range.empty() || (!condition.empty() && condition != etag)) return reply;
  const std::size_t first = std::stoul(range.substr(std::string("bytes=").size()));
  if (first >= content.size()) {
    reply.status = 416;
    reply.body.clear();
    reply.headers.push_back({"Content-Range", "bytes */" + std::to_string(content.size())});
    return reply;
  }
  reply.status = 206;
  reply.body = content.substr(first);
  reply.headers.push_back({"Content-Range", "bytes " + std::to_string(first) + "-" +
                                                std::to_string(content.size() - 1) + "/" +
                                                std::to_string(content.size())});
  return reply;
}

HttpServer::HttpServer(Handler handler, std::shared_ptr<const TlsIdentity> tls)
    : handler_(std::move(handler)), tls_(std::move(tls)), listener_(bound_socket(port_)) {
  std::signal(SIGPIPE, SIG_IGN);  // clients go away in the middle here
  ::listen(listener_, 16);
  acceptor_ = std::thread([this] { accept_connections(); });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
}

std::string HttpServer::url(const std::string& path) const {
  return (tls_ ? "https" : "http") + std::string("://127.0.0.1:") + std::to_string(port_) + path;
}

std::vector<Request> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::accept_connections() {
  while (!stopping_) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void HttpServer::serve(int socket) {
  {
    Connection connection(socket, tls_.get());
    const std::string head = read_head(connection);
    if (!head.empty()) {
      int number = 0;
      const Request request = parse(head);
      {
        const std::lock_guard lock(mutex_);
        number = static_cast<int>(requests_.size());
        requests_.push_back(request);
      }
      const Reply reply = handler_(request, number);
      if (!reply.mute) {
        connection.write(head_of(reply));
        connection.write(reply.body.substr(0, reply.send));
      }
      if (reply.stall || reply.mute) wait_for_the_client_to_go(connection);
    }
  }
  const std::lock_guard lock(mutex_);
  std::erase(sockets_, socket);
  ::close(socket);
}

int closed_port() {
  int port = 0;
  ::close(bound_socket(port));
  return port;
}

}  // namespace towers::test
