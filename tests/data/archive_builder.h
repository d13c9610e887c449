#pragma once
// Tar archives in memory, harmless and hostile, for the tests of their reader.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/archive_internal.h"

namespace towers::test {

struct Member {
  enum class Kind { file, folder, symbolic_link, hard_link, device, fifo };
  std::string path;
  std::string content;  // of a file; the target of a link
  Kind kind = Kind::file;
};

std::string tar_of(const std::vector<Member>& members);
std::string gzip_of(const std::string& content);

// `size` bytes that do not compress, the same for the same seed.
std::string noise(std::size_t size, unsigned seed);

// A set like CIFAR-10's, with two training batches, and files of `bytes`; spec.url is empty.
struct SmallSet {
  data::ArchiveSpec spec;
  std::vector<Member> members;  // as published: the folder, the batches, batches.meta.txt
  std::string archive;          // their tar.gz; spec has its size and sha256

  explicit SmallSet(std::size_t bytes = 60000);
  // The content of "data_batch_1.bin" and so on.
  const std::string& content(const std::string& name) const;
};

// The sha256 of `content`.
std::string sha256_of(const std::string& content);

}  // namespace towers::test
