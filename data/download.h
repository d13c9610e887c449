#pragma once
// A whole download: attempts, back-off, the digest, the place.

#include <cstdint>
#include <filesystem>
#include <string>

#include "data/archive_internal.h"

namespace towers::data {

// What the file must be; empty or 0 where that is not known.
struct Expected {
  std::string sha256;
  std::string md5;  // for the Error alone
  std::uint64_t bytes = 0;
};

// How `path` differs from `expected` ("has 12 bytes instead of 34", "has sha256 X instead of Z (md5
// W)"); empty when it is as expected, or when nothing is.
std::string difference(const std::filesystem::path& path, const Expected& expected);

// Brings options.url to `path`: continues PATH.part, retries, checks size and digest, or, without a
// digest, that it is a whole archive of `spec`. Nothing is at `path` before that. Throws Error that
// names the address, the reason and the ways out.
void download(const ArchiveSpec& spec, const std::filesystem::path& path, const Expected& expected,
              const DownloadOptions& options);

}  // namespace towers::data
