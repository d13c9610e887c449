#pragma once
// Reading TensorBoard event files, ours and TensorFlow's: as far as `towers inspect` shows them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/file.h"

namespace towers::data {

struct EventValue {
  enum class Kind { scalar, histogram, other };
  std::string tag;
  Kind kind = Kind::other;
  double value = 0;  // of a scalar; of a histogram: the mean
  // Of a histogram.
  double least = 0, largest = 0, count = 0;
};

struct EventRecord {
  double wall_time = 0;  // seconds since 1970
  std::int64_t step = 0;
  bool graph = false;
  bool session_start = false;
  std::vector<EventValue> values{};
};

// Goes through a file's records, checking their checksums. A file may be read while it is written,
// and after its writer was killed: it ends with its last whole record.
class EventReader {
 public:
  // Throws Error: cannot be opened, or does not begin as an event file.
  explicit EventReader(const std::filesystem::path& path);

  // The next record; false at the end. Throws Error, with the path and the byte, for a record whose
  // checksum is wrong or that is no event, unless nothing but zeros is left: blocks that a power
  // cut kept from the disk.
  bool next(EventRecord& record);

  // After next() was false: bytes behind the last whole record.
  std::uint64_t torn_bytes() const { return size_ - at_; }

 private:
  bool next_message(std::string& message);
  bool only_zeros_left() const;
  [[noreturn]] void fail(const std::string& what) const;

  std::filesystem::path path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0, at_ = 0;
};

// Whether `path` is a plain file that begins with an event file's first record.
bool is_event_file(const std::filesystem::path& path);

}  // namespace towers::data
