#include "data/gzip_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "data/archive_internal.h"

namespace towers::data {
namespace {

constexpr std::size_t kBuffer = 128 * 1024;
constexpr int kGzipOnly = 16 + MAX_WBITS;  // zlib: expect a gzip header, check its trailer

Bytef* zlib_bytes(std::byte* bytes) {
  return reinterpret_cast<Bytef*>(bytes);
}

bool looks_like_html(std::span<const std::byte> start) {
  std::string text;
  for (const std::byte byte : start.first(std::min<std::size_t>(start.size(), 512)))
    text += static_cast<char>(std::tolower(std::to_integer<unsigned char>(byte)));
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");  // or a byte order mark
  if (first == std::string::npos || text[first] != '<') return false;
  return text.find("<!doctype html") != std::string::npos ||
         text.find("<html") != std::string::npos || text.find("<head") != std::string::npos ||
         text.find("<body") != std::string::npos;
}

}  // namespace

std::string describe_content(std::span<const std::byte> start) {
  if (start.empty()) return "empty";
  if (start.size() >= 2 && start[0] == std::byte{0x1f} && start[1] == std::byte{0x8b})
    return "gzip";
  if (start.size() >= 262 && std::memcmp(&start[257], "ustar", 5) == 0) return "tar";
  if (looks_like_html(start)) return "a web page (HTML)";
  std::string text = "unknown content (first bytes";
  for (const std::byte byte : start.first(std::min<std::size_t>(start.size(), 4))) {
    char digits[8];
    std::snprintf(digits, sizeof digits, " %02x", std::to_integer<unsigned int>(byte));
    text += digits;
  }
  return text + ")";
}

GzipReader::GzipReader(const std::filesystem::path& path)
    : path_(path), file_(open_to_read(path)), input_(kBuffer) {
  fill();
  const std::string content = describe_content({input_.data(), input_size_});
  compressed_ = content == "gzip";
  if (!compressed_ && content != "tar") fail("not a gzip or tar archive but " + content);
  if (!compressed_) return;
  output_.resize(kBuffer);
  stream_.next_in = zlib_bytes(input_.data());
  stream_.avail_in = static_cast<uInt>(input_size_);
  if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw Error(path.string() + ": out of memory");
}

GzipReader::~GzipReader() {
  if (compressed_) inflateEnd(&stream_);
}

bool GzipReader::fill() {
  ssize_t got = 0;
  do got = ::read(file_.get(), input_.data(), input_.size());
  while (got < 0 && errno == EINTR);
  if (got < 0) throw_file_error("read", path_, errno);
  input_size_ = static_cast<std::size_t>(got);
  return got > 0;
}

std::span<const std::byte> GzipReader::next() {
  if (!compressed_) {
    // The constructor's look at the content filled the first buffer.
    if (position_ > 0 && !fill()) return {};
    position_ += input_size_;
    return {input_.data(), input_size_};
  }
  stream_.next_out = zlib_bytes(output_.data());
  stream_.avail_out = static_cast<uInt>(output_.size());
  while (!ended_ && stream_.avail_out > 0) inflate_some();
  const std::size_t made = output_.size() - stream_.avail_out;
  position_ += made;
  return {output_.data(), made};
}

void GzipReader::inflate_some() {
  if (stream_.avail_in == 0) {
    if (!fill()) fail("truncated: the gzip stream ends early", true);
    stream_.next_in = zlib_bytes(input_.data());
    stream_.avail_in = static_cast<uInt>(input_size_);
  }
  switch (inflate(&stream_, Z_NO_FLUSH)) {
    case Z_OK:
    case Z_BUF_ERROR:
      return;
    case Z_STREAM_END:
      return end_member();
    case Z_MEM_ERROR:
      throw Error(path_.string() + ": out of memory");
    default:
      fail(std::string("damaged: ") + (stream_.msg ? stream_.msg : "not a valid gzip stream"));
  }
}

// A further member may follow; anything else behind the end is garbage.
void GzipReader::end_member() {
  if (stream_.avail_in == 0) {
    if (!fill()) {
      ended_ = true;
      return;
    }
    stream_.next_in = zlib_bytes(input_.data());
    stream_.avail_in = static_cast<uInt>(input_size_);
  }
  if (stream_.next_in[0] != 0x1f) fail("damaged: garbage behind the end of the gzip stream");
  inflateReset(&stream_);
}

void GzipReader::fail(const std::string& what, bool cut) const {
  throw ArchiveError(path_, what, cut);
}

}  // namespace towers::data
