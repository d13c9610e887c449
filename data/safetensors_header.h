#pragma once
// The JSON header of a safetensors file, read value by value: memory in proportion to what it
// holds.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace towers::data {

struct SafetensorsEntry {
  std::string type;  // "F32"
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // of its bytes, behind the header
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Throws Error without the path: no JSON object, an entry that lacks something, holds more or comes
// twice, sizes that are no whole numbers below 2^62.
SafetensorsHeader parse_safetensors_header(std::string_view text);

}  // namespace towers::data
