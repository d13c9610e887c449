#include "cluster/security.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cluster/tls_files.h"
#include "core/error.h"

namespace towers::cluster {
namespace {

constexpr std::size_t kLongestToken = 4096;      // it travels in a header
constexpr std::size_t kLongestFile = 1'000'000;  // more is no certificate: /dev/zero has no end

std::string read_file(const std::string& flag, const std::string& path) {
  // A shell's <(command) is a pipe too, with a writer.
  std::error_code ignored;
  if (std::filesystem::is_fifo(path, ignored) && !path.starts_with("/dev/"))
    throw Error("--" + flag + ": " + path +
                " is a pipe, which may be waited for in vain; name a file");
  std::ifstream file(path, std::ios::binary);
  std::string text(kLongestFile, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (!file.is_open() || file.bad())
    throw Error("--" + flag + ": cannot read " + path + ": " + std::strerror(errno));
  if (text.empty()) throw Error("--" + flag + ": " + path + " is empty");
  return text;
}

std::string read_token(const std::string& path) {
  std::string token = read_file("cluster_token_file", path);
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; });
  if (token.empty() || !printable || token.size() > kLongestToken)
    throw Error("--cluster_token_file: " + path +
                " is not one line of printable characters without blanks; make one with: openssl "
                "rand -hex 32");
  return token;
}

}  // namespace

Security read_security(const SecurityFiles& files) {
  const bool some = !files.certificate.empty() || !files.key.empty() || !files.authority.empty();
  const bool all = !files.certificate.empty() && !files.key.empty() && !files.authority.empty();
  if (some && !all) throw UsageError("--tls_cert, --tls_key and --tls_ca: give all three or none");
  Security security;
  if (!files.token.empty()) security.token = read_token(files.token);
  if (all) {
    security.certificate = read_file("tls_cert", files.certificate);
    security.key = read_file("tls_key", files.key);
    security.authority = read_file("tls_ca", files.authority);
    check_tls_files(files, security);
  }
  return security;
}

bool equal_secrets(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |=
        static_cast<unsigned char>(a[i]) ^ static_cast<unsigned>(static_cast<unsigned char>(b[i]));
  return different == 0;
}

}  // namespace towers::cluster
