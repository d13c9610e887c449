#include "core/philox.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <vector>

namespace towers {
namespace {

std::vector<std::uint32_t> words(const PhiloxBlock& b) {
  return {b.word, b.word + 4};
}
using Words = std::vector<std::uint32_t>;

}  // namespace

// The vectors that Salmon et al. publish with their Random123 library (kat_vectors, philox4x32 10).
TEST_CASE("Philox gives its authors' known answers") {
  CHECK(words(philox(0, Stream{0}, 0, 0)) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(words(philox(0xffffffffffffffff, Stream{0xffffffff}, 0xffffffffffffffff, 0xffffffff)) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // Counter and key are the digits of pi.
  CHECK(words(philox(0x299f31d0a4093822, Stream{0x03707344}, 0x85a308d3243f6a88, 0x13198a2e)) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Every part of Philox's key and counter matters") {
  std::set<Words> blocks;
  for (std::uint64_t bit = 1; bit != 0; bit <<= 1) {
    blocks.insert(words(philox(bit, Stream::order, 0)));
    blocks.insert(words(philox(0, Stream::order, bit)));
  }
  for (std::uint32_t block = 1; block != 0; block <<= 1)
    blocks.insert(words(philox(0, Stream::order, 0, block)));
  for (const Stream stream :
       {Stream::initial_values, Stream::order, Stream::distortion, Stream::synthetic})
    blocks.insert(words(philox(0, stream, 0)));
  CHECK(blocks.size() == 64 + 64 + 32 + 4);
}

TEST_CASE("uniform stays below 1 and uniform_below within its bound") {
  CHECK(uniform(0) == 0.0f);
  CHECK(uniform(0xff) == 0.0f);  // the low 8 bits are dropped
  CHECK(uniform(0x80000000) == 0.5f);
  CHECK(uniform(0xffffffff) == 1.0f - 1.0f / 16777216.0f);
  CHECK(uniform_below(0, 9) == 0);
  CHECK(uniform_below(0xffffffff, 9) == 8);
  CHECK(uniform_below(0x1c71c71c, 9) == 0);  // 2^32 / 9 = 0x1c71c71c.7
  CHECK(uniform_below(0x1c71c71d, 9) == 1);
  CHECK(uniform_below(0xffffffff, 1) == 0);
}

}  // namespace towers
