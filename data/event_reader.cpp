#include "data/event_reader.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/error.h"
#include "data/crc32c.h"
#include "data/event_file.h"
#include "protos/event.pb.h"

namespace towers::data {
namespace {

constexpr std::uint64_t kHead = 12;                // length and its checksum
constexpr std::uint64_t kTail = 4;                 // the data's checksum
constexpr std::uint64_t kLongest = 1'000'000'000;  // a record; they are kept in memory
constexpr std::string_view kVersion = "brain.Event:";

EventValue value_of(const proto::Summary::Value& from) {
  EventValue value{.tag = from.tag()};
  if (from.value_case() == proto::Summary::Value::kSimpleValue) {
    value.kind = EventValue::Kind::scalar;
    value.value = double{from.simple_value()};
  } else if (from.value_case() == proto::Summary::Value::kHisto) {
    const proto::HistogramProto& histogram = from.histo();
    value.kind = EventValue::Kind::histogram;
    value.least = histogram.min();
    value.largest = histogram.max();
    value.count = histogram.num();
    value.value = histogram.num() == 0 ? 0 : histogram.sum() / histogram.num();
  }
  return value;
}

}  // namespace

EventReader::EventReader(const std::filesystem::path& path)
    : path_(path), file_(open_to_read(path)), size_(file_size(file_, path)) {
  std::string message;
  proto::Event event;
  bool begins = false;
  try {
    begins = next_message(message) && event.ParseFromString(message) &&
             event.file_version().starts_with(kVersion);
  } catch (const Error&) {  // of a checksum: then it is no such file at all
  }
  if (!begins) throw Error(path.string() + " is not an event file: it does not begin like one");
}

bool EventReader::next(EventRecord& record) {
  const std::uint64_t begin = at_;
  std::string message;
  if (!next_message(message)) return false;
  proto::Event event;
  if (!event.ParseFromString(message)) {
    at_ = begin;
    fail("is not an event");
  }
  record = {.wall_time = event.wall_time(), .step = event.step(), .graph = event.has_graph_def()};
  record.session_start =
      event.has_session_log() && event.session_log().status() == proto::SessionLog::START;
  for (const auto& value : event.summary().value()) record.values.push_back(value_of(value));
  return true;
}

bool EventReader::next_message(std::string& message) {
  if (size_ - at_ < kHead + kTail) return false;
  std::string head(kHead, '\0');
  read_at(file_, path_, at_, std::as_writable_bytes(std::span(head)));
  std::uint64_t length = 0;
  std::uint32_t crc = 0;
  std::memcpy(&length, head.data(), sizeof length);
  std::memcpy(&crc, head.data() + sizeof length, sizeof crc);
  if (mask_crc32c(crc32c(std::as_bytes(std::span(head)).first(sizeof length))) != crc) {
    if (only_zeros_left()) return false;
    fail("has a wrong checksum of its length");
  }
  if (length > size_ - at_ - kHead - kTail) return false;
  if (length > kLongest) fail("is longer than 1 GB");
  message.resize(static_cast<std::size_t>(length));
  read_at(file_, path_, at_ + kHead, std::as_writable_bytes(std::span(message)));
  read_at(file_, path_, at_ + kHead + length, std::as_writable_bytes(std::span(&crc, 1)));
  if (mask_crc32c(crc32c(std::as_bytes(std::span(message)))) != crc) fail("has a wrong checksum");
  at_ += kHead + length + kTail;
  return true;
}

bool EventReader::only_zeros_left() const {
  std::string chunk;
  for (std::uint64_t at = at_; at < size_; at += chunk.size()) {
    chunk.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size_ - at, 65536)));
    read_at(file_, path_, at, std::as_writable_bytes(std::span(chunk)));
    if (chunk.find_first_not_of('\0') != std::string::npos) return false;
  }
  return true;
}

void EventReader::fail(const std::string& what) const {
  throw Error(path_.string() + " is damaged: the record at byte " + std::to_string(at_) + " " +
              what + "; what follows cannot be read, copy the file again");
}

bool is_event_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  try {
    EventReader reader(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace towers::data
