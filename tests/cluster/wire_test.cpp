// Values on their way.
#include "cluster/wire.h"

#include <catch2/catch.hpp>

#include <string>

using namespace towers;
using namespace towers::cluster;

namespace {

struct Chunk {
  std::size_t at = 0;
  std::string bytes;
  bool is_last = false;
  void set_offset(std::size_t offset) { at = offset; }
  void set_values(const void* data, std::size_t size) {
    bytes.assign(static_cast<const char*>(data), size);
  }
  void set_last(bool last) { is_last = last; }
  std::size_t offset() const { return at; }
  const std::string& values() const { return bytes; }
};

}  // namespace

TEST_CASE("values of both kinds come over in bounded chunks, and into their place alone") {
  std::vector<float> values(kChunkBytes / sizeof(float) + 3, 1.0f);
  values.back() = -2.5f;
  std::vector<std::uint16_t> halves(2 * values.size());
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = to_bfloat16(values[i / 2]);
  std::vector<float> back(values.size()), halves_back(halves.size());
  Chunk chunk;
  int chunks = 0;
  const auto receive = [&](std::span<float> to, bool bfloat16) {
    return [&, to, bfloat16](const Chunk& c) {
      ++chunks;
      CHECK(c.bytes.size() <= kChunkBytes);
      return bfloat16 ? take_bfloat16_chunk(c, to) : take_chunk(c, to);
    };
  };
  CHECK(send_chunks(std::span<const float>(values), chunk, receive(back, false)));
  CHECK(chunks == 2);
  CHECK(back == values);
  CHECK(send_chunks(std::span<const std::uint16_t>(halves), chunk, receive(halves_back, true)));
  CHECK(chunks == 4);
  CHECK(halves_back.back() == -2.5f);
  chunk.bytes = "abcde";
  CHECK_FALSE(take_chunk(chunk, back));
  CHECK_FALSE(take_bfloat16_chunk(chunk, back));
  chunk.bytes = "abcdefgh";
  chunk.at = back.size() - 1;
  CHECK_FALSE(take_chunk(chunk, back));
  CHECK_FALSE(take_bfloat16_chunk(chunk, back));
}
