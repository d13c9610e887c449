// A picture. An even first byte: the file as it is. An odd one: a PNG's chunks, each with a
// two-byte length before its type and content; they get right lengths and checksums, and the
// picture sides below 1024, since a few bytes may well be a large and empty PNG.

#include <zlib.h>

#include <cstdint>

#include "data/picture.h"
#include "tests/fuzz/target.h"

using namespace towers;

namespace {

void append_number(std::string& file, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(number >> shift & 0xff);
}

std::string png_of(std::string_view rest) {
  std::string file = "\x89PNG\r\n\x1a\n";
  while (!rest.empty()) {
    std::string chunk(fuzz::take_piece(rest, 2));
    chunk.resize(std::max<std::size_t>(chunk.size(), 4), ' ');
    if (chunk.starts_with("IHDR") && chunk.size() >= 12)
      for (const std::size_t side : {4, 8}) {
        chunk[side] = chunk[side + 1] = 0;
        chunk[side + 2] = static_cast<char>(chunk[side + 2] & 3);
      }
    append_number(file, static_cast<std::uint32_t>(chunk.size() - 4));
    file += chunk;
    append_number(
        file, static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(chunk.data()),
                                                 static_cast<uInt>(chunk.size()))));
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view rest = fuzz::view(bytes, size);
  if (rest.empty()) return 0;
  const bool raw = static_cast<unsigned char>(rest.front()) % 2 == 0;
  rest.remove_prefix(1);
  const std::filesystem::path path = fuzz::folder() / "picture";
  fuzz::write_file(path, raw ? std::string(rest) : png_of(rest));
  fuzz::expect_errors_alone([&] {
    const data::Picture picture = data::read_picture(path);
    const std::int64_t pixels = std::int64_t{picture.width} * picture.height;
    if (pixels <= 0 || picture.rgb.size() != static_cast<std::size_t>(3 * pixels))
      fuzz::fail("a picture whose size is not that of its pixels");
  });
  return 0;
}
