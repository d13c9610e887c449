#pragma once
// Values that a script and a test can both make, so that no file need hold them.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace towers::reference {

// `count` values in [-scale, scale), exact in float32 but for the product with the scale: a hash of
// (stream, index). `formula` of tests/golden/makers/nets.py is the same.
inline std::vector<float> formula(std::size_t count, std::uint32_t stream, float scale) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t h = static_cast<std::uint32_t>(i) + stream * 0x9E3779B9u;
    h ^= h >> 16;
    h *= 0x7FEB352Du;
    h ^= h >> 15;
    h *= 0x846CA68Bu;
    h ^= h >> 16;
    values[i] = (static_cast<float>(h >> 8) / 8388608.0f - 1.0f) * scale;
  }
  return values;
}

}  // namespace towers::reference
