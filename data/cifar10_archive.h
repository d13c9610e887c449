#pragma once
// Getting CIFAR-10: the archive from the network (or a file:// address), its digest, its
// extraction.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace towers::data {

inline constexpr const char* kCifar10Url =
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
inline constexpr const char* kCifar10Sha256 =
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd";
inline constexpr const char* kCifar10Md5 = "c32a1d4ab5d03f1284b67883e8d87530";
inline constexpr std::uint64_t kCifar10Bytes = 170052171;

struct Progress {
  const char* doing = "Downloading";  // or "Extracting"
  std::string file;
  std::uint64_t done = 0, total = 0;  // bytes; total 0: unknown
  double bytes_per_second = 0;        // over the last few seconds
  double seconds_left = 0;            // 0: unknown
};

// What ends a transfer that does not get on. A run ends within about
// attempts * (connect_seconds + stall_seconds) + the back-off when nothing moves at all.
struct TransferLimits {
  double connect_seconds = 20;  // name look-up, TCP and TLS together
  int stall_seconds = 30;       // this long below stall_bytes_per_second is a cut
  long stall_bytes_per_second = 1024;
  int redirects = 5;
  std::uint64_t bytes = 1ULL << 30;     // of an archive whose size is not known beforehand
  double longest_backoff_seconds = 60;  // also bounds a server's Retry-After
};

struct DownloadOptions {
  std::string url = kCifar10Url;  // http, https or file
  std::string sha256;  // empty: not checked (a warning), the official one for the official address
  bool allow_network = true;  // false: an Error that prints address and path; file:// stays allowed
  int attempts = 5;
  double first_backoff_seconds = 1;  // doubles with each attempt
  TransferLimits limits;
  std::function<void(const Progress&)> progress;  // may be empty; called a few times a second
  std::function<void(const std::string& line)> message;  // one-line news: retries, success
  std::function<void(const std::string& line)>
      warning;  // a digest that is not checked, and the like
};

// Makes data_dir hold an extracted, complete set: six .bin files of 30,730,000 bytes in
// data_dir/cifar-10-batches-bin, or in data_dir itself. Throws Error that names what failed and the
// ways out (--data_url, --data_dir, --dataset=synthetic). In this order:
//
// 1. The set is there: nothing is done, opened for writing or fetched; a read-only data_dir will
// do.
// 2. Some .bin files are missing or have the wrong size, and no archive lies in data_dir: an Error.
//    So is a data_dir one level too high or too deep, or with the pickle version of the data.
// 3. data_dir/cifar-10-binary.tar.gz exists. It is used when its sha256 is the expected one
//    (`sha256`, or the official one at the official address). With another digest, or none to
//    expect:
//    - not whole (cut, damaged, not an archive of this set): completed by HTTP range or replaced,
//      and a message says so;
//    - whole, every file of the right size, and `sha256` empty (a mirror's or a rebuilt archive):
//      used, with a one-line warning that its digest is not the official one;
//    - whole, but not of the given `sha256`: replaced; an Error without network.
// 4. Else it is downloaded to cifar-10-binary.tar.gz.part, continued by HTTP range after a cut (in
// a
//    later run too, if the server still has the same file), retried with back-off, checked (size
//    and sha256; without a digest the archive's own checksums), synced, and renamed. A file that
//    fails is not put in place. Certificates are verified; redirects lead to http and https alone,
//    never from https to http; http_proxy, https_proxy and no_proxy are honoured, and
//    SSL_CERT_FILE.
//
// Processes that share data_dir take turns, by a lock file. The archive is kept after extraction.
void ensure_cifar10(const std::filesystem::path& data_dir, const DownloadOptions& options);

}  // namespace towers::data
