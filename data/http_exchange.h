#pragma once
// One request of a download, with libcurl.

#include <cstdint>
#include <functional>
#include <string>

#include "core/error.h"
#include "data/cifar10_archive.h"
#include "data/part_file.h"

namespace towers::data {

// A transfer that failed; what() is the reason alone, without address.
class TransferError : public Error {
 public:
  TransferError(const std::string& reason, bool transient, double retry_after_seconds = 0)
      : Error(reason), transient(transient), retry_after_seconds(retry_after_seconds) {}
  bool transient;  // another try may succeed
  double retry_after_seconds;
};

struct Transfer {
  std::string url;
  std::uint64_t bytes = 0;  // of the whole file; 0: not known beforehand
  TransferLimits limits;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // total 0: unknown
  std::function<void(const std::string& line)> message;
};

// Fetches what `part` lacks, by range where it has bytes already, following redirects; returns when
// all of it has come. A server that sends another file, or cannot continue, makes the part start
// anew. Throws TransferError; the bytes that came stay in `part`.
void fetch(const Transfer& transfer, PartFile& part);

}  // namespace towers::data
