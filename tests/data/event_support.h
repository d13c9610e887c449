#pragma once
// Reading event files back, as TensorBoard does: record by record, up to the first torn one.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "data/event_file.h"
#include "protos/event.pb.h"
#include "tests/support.h"

namespace towers::test {

// The messages of whole records. `end`, where given, is set to the bytes that they take.
inline std::vector<std::string> read_records(const std::string& bytes, std::size_t* end = nullptr) {
  std::vector<std::string> messages;
  std::size_t at = 0;
  while (bytes.size() - at >= 16) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    if (length > bytes.size() - at - 16) break;
    const std::string message = bytes.substr(at + 12, static_cast<std::size_t>(length));
    const std::string record = data::frame_record(message);
    if (bytes.compare(at, record.size(), record) != 0) break;
    messages.push_back(message);
    at += record.size();
  }
  if (end != nullptr) *end = at;
  return messages;
}

inline std::vector<proto::Event> read_events(const std::filesystem::path& path) {
  std::vector<proto::Event> events;
  for (const std::string& message : read_records(read_file(path)))
    events.emplace_back().ParseFromString(message);
  return events;
}

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace towers::test
