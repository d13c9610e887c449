#pragma once
// Limits and chunks of the protocol in protos/parameter_server.proto.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/bfloat16.h"

namespace towers::cluster {

static_assert(std::endian::native == std::endian::little, "values travel as they lie in memory");

inline constexpr std::uint32_t kProtocolVersion = 4;
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
inline constexpr int kLargestMessage = (1 << 20) + (1 << 16);
inline constexpr std::uint64_t kLargestShard = std::uint64_t{1} << 30;  // values: 4 GiB

// Sends `values` (float, or bfloat16 as std::uint16_t) in chunks: fills offset, values and last of
// `message` and calls send(message), until all are sent (an empty shard is one empty chunk) or send
// returns false.
template <class Value, class Message, class Send>
bool send_chunks(std::span<const Value> values, Message& message, const Send& send) {
  for (std::size_t offset = 0;;) {
    const std::size_t count = std::min(kChunkBytes / sizeof(Value), values.size() - offset);
    message.set_offset(offset);
    message.set_values(values.data() + offset, count * sizeof(Value));
    offset += count;
    message.set_last(offset == values.size());
    if (!send(message)) return false;
    if (offset == values.size()) return true;
  }
}

// The same of floats, rounded to bfloat16 in `halves`.
template <class Message, class Send>
bool send_bfloat16_chunks(std::span<const float> values, std::vector<std::uint16_t>& halves,
                          Message& message, const Send& send) {
  halves.resize(values.size());
  std::transform(values.begin(), values.end(), halves.begin(), to_bfloat16);
  return send_chunks(std::span<const std::uint16_t>(halves), message, send);
}

// Copies a chunk to its place. False when it does not fit there.
template <class Message>
bool take_chunk(const Message& message, std::span<float> values) {
  const std::string& bytes = message.values();
  const std::size_t count = bytes.size() / sizeof(float);
  if (bytes.size() % sizeof(float) != 0 || message.offset() > values.size() ||
      count > values.size() - message.offset())
    return false;
  if (count > 0) std::memcpy(values.data() + message.offset(), bytes.data(), bytes.size());
  return true;
}

// The same of a chunk of bfloat16.
template <class Message>
bool take_bfloat16_chunk(const Message& message, std::span<float> values) {
  const std::string& bytes = message.values();
  const std::size_t count = bytes.size() / sizeof(std::uint16_t);
  if (bytes.size() % sizeof(std::uint16_t) != 0 || message.offset() > values.size() ||
      count > values.size() - message.offset())
    return false;
  float* to = values.data() + message.offset();
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + i * sizeof half, sizeof half);
    to[i] = from_bfloat16(half);
  }
  return true;
}

}  // namespace towers::cluster
