#pragma once
// Limits and chunks of the protocol in protos/parameter_server.proto.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace towers::cluster {

static_assert(std::endian::native == std::endian::little, "values travel as they lie in memory");

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::size_t kChunkValues = std::size_t{1} << 18;  // 1 MiB
inline constexpr int kLargestMessage = (1 << 20) + (1 << 16);
inline constexpr std::uint64_t kLargestShard = std::uint64_t{1} << 30;  // values: 4 GiB

// Sends `values` in chunks: fills offset, values and last of `message` and calls send(message),
// until all are sent (an empty shard is one empty chunk) or send returns false.
template <class Message, class Send>
bool send_chunks(std::span<const float> values, Message& message, const Send& send) {
  for (std::size_t offset = 0;;) {
    const std::size_t count = std::min(kChunkValues, values.size() - offset);
    message.set_offset(offset);
    message.set_values(values.data() + offset, count * sizeof(float));
    offset += count;
    message.set_last(offset == values.size());
    if (!send(message)) return false;
    if (offset == values.size()) return true;
  }
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

}  // namespace towers::cluster
