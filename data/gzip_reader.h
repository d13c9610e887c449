#pragma once
// A file's bytes, decompressed when it is gzip. libarchive's own gzip filter checks neither CRC nor
// length (3.6, archive_read_support_filter_gzip.c), so zlib does it here.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "data/file.h"

namespace towers::data {

class GzipReader {
 public:
  // Throws Error when the file cannot be opened, ArchiveError when it is neither gzip nor tar; the
  // message says what it looks like.
  explicit GzipReader(const std::filesystem::path& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // The next piece, valid until the next call; empty at the end, when checksum and length of every
  // gzip member have been checked and nothing is left behind the last one. Throws ArchiveError.
  std::span<const std::byte> next();

  // Decompressed bytes given out so far.
  std::uint64_t position() const { return position_; }

 private:
  bool fill();  // the next piece of the file into input_; false at its end
  void inflate_some();
  void end_member();
  [[noreturn]] void fail(const std::string& what, bool cut = false) const;

  std::filesystem::path path_;
  FileDescriptor file_;
  std::vector<std::byte> input_, output_;
  std::size_t input_size_ = 0;
  bool compressed_ = true;
  bool ended_ = false;
  z_stream stream_{};
  std::uint64_t position_ = 0;
};

// What the first bytes of a file look like: "gzip", "tar", "a web page (HTML)", "empty", or
// "unknown content (first bytes 50 4b 03 04)".
std::string describe_content(std::span<const std::byte> start);

}  // namespace towers::data
