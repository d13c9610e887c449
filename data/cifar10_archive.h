#pragma once
// Getting CIFAR-10: the archive from the network (or a file:// address), its digest, its extraction.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace towers::data {

inline constexpr const char* kCifar10Url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
inline constexpr const char* kCifar10Sha256 =
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd";
inline constexpr const char* kCifar10Md5 = "c32a1d4ab5d03f1284b67883e8d87530";
inline constexpr std::uint64_t kCifar10Bytes = 170052171;

struct Progress {
  std::string file;
  std::uint64_t done = 0, total = 0;  // bytes; total 0: unknown
  double bytes_per_second = 0, seconds_left = 0;
};

struct DownloadOptions {
  std::string url = kCifar10Url;
  std::string sha256;         // empty: not checked (a warning), the official one for the official address
  bool allow_network = true;  // false: an Error that prints address and path
  int attempts = 5;
  double first_backoff_seconds = 1;
  std::function<void(const Progress&)> progress;          // may be empty; called a few times a second
  std::function<void(const std::string& line)> message;   // one-line news: retries, warnings, success
};

// Makes data_dir hold an extracted, complete set: does nothing when it does already (no network);
// else uses or completes an archive that lies there; else downloads (resumed by HTTP range, retried
// with back-off, digest checked, put in place by rename), then extracts. Throws Error that names what
// failed and the ways out (--data_url, --data_dir, --dataset=synthetic).
void ensure_cifar10(const std::filesystem::path& data_dir, const DownloadOptions& options);

// Streams `archive` (tar, gzip or not) into `folder`: the seven expected files alone, each by a
// temporary name and rename. Other plain members and folders are skipped; absolute paths, "..",
// links, devices and sizes beyond the expected are an Error that names the member.
void extract_cifar10(const std::filesystem::path& archive, const std::filesystem::path& folder);

}  // namespace towers::data
