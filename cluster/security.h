#pragma once
// What keeps strangers out of a cluster.

#include <string>

namespace towers::cluster {

struct Security {
  std::string token;  // shared secret; empty: none
  // PEM texts: this task's certificate chain and key, and the authority that signed everybody's.
  // All three or none.
  std::string certificate, key, authority;

  bool has_token() const { return !token.empty(); }
  bool has_tls() const { return !certificate.empty(); }
};

// Names of files, from the flags; empty: none.
struct SecurityFiles {
  std::string token, certificate, key, authority;
};

// Throws Error: a file that cannot be read, that is empty, a token that is not one line of
// printable characters, TLS files that do not fit together. UsageError: some of those without the
// others.
Security read_security(const SecurityFiles& files);

// Takes as long for any two texts of equal length, so that time tells nothing about a secret.
bool equal_secrets(const std::string& a, const std::string& b);

}  // namespace towers::cluster
