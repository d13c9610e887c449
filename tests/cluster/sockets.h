#pragma once
// Strangers: a connection to a port of this machine, and another program on one.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace towers::test {

inline int port_of(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

class Knock {
 public:
  Knock(const char* ip, int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, ip, &address.sin_addr);
    const timeval patience{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    good_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Knock() { ::close(socket_); }
  Knock(const Knock&) = delete;
  Knock& operator=(const Knock&) = delete;

  bool good() const { return good_; }
  // As much as the other side takes, for a second.
  void send(const std::string& bytes) const {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<std::size_t>(n);
    }
  }

 private:
  int socket_;
  bool good_ = false;
};

// Has the port of 127.0.0.1, takes each connection, says `greeting` and nothing more.
class Stranger {
 public:
  Stranger(int port, std::string greeting)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), greeting_(std::move(greeting)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket_, 8) != 0)
      throw std::runtime_error("the port was taken meanwhile");
    thread_ = std::thread([this] { greet(); });
  }
  ~Stranger() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    for (int guest : guests_) ::close(guest);
    ::close(socket_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

 private:
  void greet() {
    for (int guest; (guest = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      guests_.push_back(guest);
      if (!greeting_.empty()) (void)::send(guest, greeting_.data(), greeting_.size(), MSG_NOSIGNAL);
    }
  }

  int socket_;
  std::string greeting_;
  std::vector<int> guests_;
  std::thread thread_;
};

}  // namespace towers::test
