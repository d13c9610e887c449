#pragma once
// The head of an HTTP response, as far as a download needs it (RFC 9110).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace towers::data {

struct ContentRange {
  std::uint64_t first = 0, last = 0;
  bool unsatisfied = false;            // "bytes */TOTAL", with status 416
  std::optional<std::uint64_t> total;  // "bytes 0-9/*" does not say
};

// "bytes 100-199/1000"; nothing when it is malformed.
std::optional<ContentRange> parse_content_range(std::string_view value);

struct ResponseHead {
  int status = 0;  // 0: none, as with file://
  std::string etag;
  std::string last_modified;
  std::string content_type;
  std::optional<ContentRange> content_range;

  // Takes one line as it comes from the wire. A status line starts anew: heads of 1xx answers come
  // first.
  void add_line(std::string_view line);

  // For If-Range: the ETag if it is a strong one, else empty.
  std::string strong_etag() const;
};

// "404 Not Found"; the number alone where the phrase is not common.
std::string describe_status(int status);

// Statuses that may be gone a little later: 408, 425, 429 and 5xx.
bool is_transient_status(int status);

}  // namespace towers::data
