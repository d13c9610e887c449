#include "data/tensor_slice.h"

#include <bit>

namespace towers::data {
namespace {

// Length in bytes, then the number without leading zeros, big-endian.
void append_unsigned(std::string& key, std::uint64_t value) {
  const int bytes = (static_cast<int>(std::bit_width(value)) + 7) / 8;
  key += static_cast<char>(bytes);
  for (int i = bytes - 1; i >= 0; --i) key += static_cast<char>(value >> (8 * i));
}

// 0 and 255 are escaped, since 0 1 ends the string.
void append_string(std::string& key, const std::string& text) {
  for (const char c : text) {
    key += c;
    if (c == '\0') key += '\xff';
    if (c == '\xff') key += '\0';
  }
  key += '\0';
  key += '\x01';
}

// Two's complement, big-endian, in as few bytes as hold the value beside a header: as many one bits
// as there are bytes, then a zero bit, all inverted for negative values.
void append_signed(std::string& key, std::int64_t value) {
  const std::uint64_t magnitude = static_cast<std::uint64_t>(value < 0 ? ~value : value);
  // The header and the sign take length + 1 bits.
  const int length = static_cast<int>(std::bit_width(magnitude)) / 7 + 1;
  unsigned char bytes[10];
  for (int i = 0; i < length; ++i) {
    const int shift = 8 * (length - 1 - i);
    bytes[i] = static_cast<unsigned char>(shift < 64 ? value >> shift : value >> 63);
  }
  for (int bit = 0; bit < length; ++bit)
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (0x80 >> (bit % 8)));
  for (int i = 0; i < length; ++i) key += static_cast<char>(bytes[i]);
}

}  // namespace

std::string slice_key(const std::string& name, const TensorSlice& slice) {
  std::string key;
  append_unsigned(key, 0);
  append_string(key, name);
  append_unsigned(key, slice.size());
  for (const SliceExtent& extent : slice) {
    append_signed(key, extent.start);
    append_signed(key, extent.length);
  }
  return key;
}

std::string slice_owner(const std::string& key) {
  std::string name;
  for (std::size_t i = 1; i < key.size(); ++i) {
    const char next = i + 1 < key.size() ? key[i + 1] : '\0';
    if (key[i] == '\0' && next == '\x01') break;
    name += key[i];
    if ((key[i] == '\0' && next == '\xff') || (key[i] == '\xff' && next == '\0')) ++i;
  }
  return name;
}

}  // namespace towers::data
