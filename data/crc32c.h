#pragma once
// CRC-32C (Castagnoli), the checksum of checkpoints and event files, by ISA-L.

#include <cstddef>
#include <cstdint>
#include <span>

namespace towers::data {

// Of `bytes` alone, or going on from the checksum of what precedes them.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

// As TensorFlow and LevelDB store it: rotated and shifted, since the checksum of data that holds
// its own checksums would otherwise be weak.
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace towers::data
