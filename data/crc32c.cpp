#include "data/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <limits>

namespace towers::data {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) {
  std::uint32_t crc = ~previous;
  while (!bytes.empty()) {  // the library takes an int as length
    constexpr std::size_t kMost = std::numeric_limits<int>::max();
    const std::size_t n = std::min(bytes.size(), kMost);
    // It only reads; its interface is not const-correct.
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(n), crc);
    bytes = bytes.subspan(n);
  }
  return ~crc;
}

}  // namespace towers::data
