#pragma once
// A self-signed certificate for 127.0.0.1, and a connection that may be encrypted with it.

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>

namespace towers::test {

class TlsIdentity {
 public:
  // Valid from `from_seconds` to `to_seconds`, counted from now.
  explicit TlsIdentity(long from_seconds = -3600, long to_seconds = 3600);
  const std::string& certificate() const { return pem_; }  // PEM: what a client must trust
  std::string private_key() const;                         // PEM
  SSL_CTX* context() const { return context_.get(); }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::string pem_;
};

// The server's end of one connection; encrypted where there is an identity. Does not own the
// socket.
class Connection {
 public:
  Connection(int socket, const TlsIdentity* identity);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  long read(char* bytes, std::size_t size);  // 0 or less: the end
  void write(const std::string& bytes);      // as much as the client takes

 private:
  int socket_;
  bool encrypted_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, &SSL_free};  // null: the handshake failed
};

}  // namespace towers::test
