#pragma once
// Philox4x32-10, a counter-based generator: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers:
// As Easy as 1, 2, 3" (SC 2011). Random draws are a pure function of (key, counter), so input
// threads, devices and resumed runs all see the same ones.

#include <cstdint>

#include "core/host_device.h"

namespace towers {

// What a draw is for: keeps streams of one seed apart.
enum class Stream : std::uint32_t {
  initial_values = 1,
  order = 2,
  distortion = 3,
  synthetic = 4,
  line = 5
};

struct PhiloxBlock {
  std::uint32_t word[4];
};

// Four random words for counter (index, stream, block) under the 64-bit key `seed`.
TOWERS_HD inline PhiloxBlock philox(std::uint64_t seed, Stream stream, std::uint64_t index,
                                    std::uint32_t block = 0) {
  std::uint32_t c0 = static_cast<std::uint32_t>(index);
  std::uint32_t c1 = static_cast<std::uint32_t>(index >> 32);
  std::uint32_t c2 = block;
  std::uint32_t c3 = static_cast<std::uint32_t>(stream);
  std::uint32_t k0 = static_cast<std::uint32_t>(seed);
  std::uint32_t k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Uniform in [0, 1), 24 bits.
TOWERS_HD inline float uniform(std::uint32_t word) {
  return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
}

// Uniform integer in [0, bound): one draw, so a value's probability is off by up to 2^-32, which
// for small bounds nobody can measure. core/order.cpp, with its large ones, rejects instead.
TOWERS_HD inline std::uint32_t uniform_below(std::uint32_t word, std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{word} * bound) >> 32);
}

}  // namespace towers
