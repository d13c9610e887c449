// Pictures in files, whole and hostile. The files are made here, by the libraries' own writers.
#include "data/picture.h"

#include <png.h>
#include <turbojpeg.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/data/output_support.h"
#include "tests/support.h"

using namespace towers;
using namespace towers::data;
using namespace towers::test;
using Bytes = std::vector<std::uint8_t>;

namespace {

std::string png(int width, int height, const Bytes& pixels, unsigned format = PNG_FORMAT_RGB) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  png_alloc_size_t size = 0;
  REQUIRE(png_image_write_get_memory_size(image, size, 0, pixels.data(), 0, nullptr) != 0);
  std::string content(size, '\0');
  REQUIRE(png_image_write_to_memory(&image, content.data(), &size, 0, pixels.data(), 0, nullptr));
  content.resize(size);
  return content;
}

std::string jpeg(int width, int height, const Bytes& pixels, int format, int sampling) {
  tjhandle encoder = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  REQUIRE(tjCompress2(encoder, pixels.data(), width, 0, height, format, &out, &size, sampling, 95,
                      0) == 0);
  const std::string content(reinterpret_cast<char*>(out), size);
  tjFree(out);
  tjDestroy(encoder);
  return content;
}

Picture read(const std::string& content, const std::string& name = "picture") {
  TemporaryFolder folder;
  write_file(folder.path() / name, content);
  return read_picture(folder.path() / name);
}

std::string complaint_about(const std::string& content) {
  const std::string message = error_of([&] { read(content, "a b.png"); });
  CHECK(message.find('\n') == std::string::npos);
  if (!message.empty()) CHECK(contains(message, "/a b.png: "));
  return message;
}

// Red, green, blue, and one that is none of them.
const Bytes kFour = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30};

}  // namespace

TEST_CASE("PNG: colors, gray, and white behind what is transparent") {
  const Picture color = read(png(2, 2, kFour));
  CHECK(color.width == 2);
  CHECK(color.height == 2);
  CHECK(color.rgb == kFour);
  CHECK(read(png(2, 1, {7, 200}, PNG_FORMAT_GRAY)).rgb == Bytes{7, 7, 7, 200, 200, 200});
  CHECK(read(png(2, 1, {1, 2, 3, 255, 1, 2, 3, 0}, PNG_FORMAT_RGBA)).rgb ==
        Bytes{1, 2, 3, 255, 255, 255});
}

TEST_CASE("JPEG: colors and gray, near what went in") {
  const Bytes even(3 * 40 * 24, 90);
  const Picture color = read(jpeg(40, 24, even, TJPF_RGB, TJSAMP_420), "picture.png");
  CHECK(color.width == 40);
  CHECK(color.height == 24);
  for (const std::uint8_t value : color.rgb) CHECK(std::abs(value - 90) <= 2);
  CHECK(read(jpeg(8, 8, Bytes(64, 50), TJPF_GRAY, TJSAMP_GRAY)).rgb.size() == 3 * 64);
}

TEST_CASE("PPM: binary and text, comments, any largest value") {
  CHECK(read(std::string("P6 2 1 255\n\1\2\3\4\5\6", 17)).rgb == Bytes{1, 2, 3, 4, 5, 6});
  CHECK(read("P3\n# by hand\n2 1 # wide\n255\n1 2 3  4 5 6").rgb == Bytes{1, 2, 3, 4, 5, 6});
  CHECK(read("P3 1 1 1 0 1 1").rgb == Bytes{0, 255, 255});
  CHECK(read(std::string("P6 1 1 65535 \xff\xff\x80\x00\x00\x00", 19)).rgb == Bytes{255, 128, 0});
}

TEST_CASE("a PNG cut off anywhere, or with a wrong byte, is an error that names the file") {
  const std::string whole = png(2, 2, kFour);
  for (std::size_t size = 0; size < whole.size() - 12; ++size)  // its last 12 bytes say it ends
    CHECK_FALSE(complaint_about(whole.substr(0, size)).empty());
  std::string damaged = whole;
  damaged[whole.size() - 20] ^= 1;
  CHECK(contains(complaint_about(damaged), "damaged PNG"));
}

TEST_CASE("a JPEG cut off anywhere is an error") {
  Bytes noise;
  for (int i = 0; i < 3 * 32 * 32; ++i) noise.push_back(static_cast<std::uint8_t>(i * 73));
  const std::string whole = jpeg(32, 32, noise, TJPF_RGB, TJSAMP_444);
  for (std::size_t size = 0; size < whole.size() - 2; size += 7)
    CHECK_FALSE(complaint_about(whole.substr(0, size)).empty());
  CHECK(contains(complaint_about(whole.substr(0, whole.size() / 2)), "damaged JPEG"));
}

TEST_CASE("dimensions beyond all measure are refused before memory is asked for") {
  std::string huge = png(2, 2, kFour);
  // Width and height of IHDR, with the checksum that they would have left out: libpng refuses the
  // one or the other.
  for (std::size_t i : {16u, 20u}) huge[i] = '\x7f';
  CHECK(contains(complaint_about(huge), "PNG"));
  std::string jpeg_header = jpeg(16, 16, Bytes(3 * 256, 1), TJPF_RGB, TJSAMP_444);
  const std::size_t frame = jpeg_header.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  for (std::size_t i = 5; i < 9; ++i) jpeg_header[frame + i] = '\xf0';
  CHECK(contains(complaint_about(jpeg_header), "61680 x 61680 pixels"));
  CHECK(contains(complaint_about("P6 60000 60000 255\n"), "cut off"));
  CHECK(contains(complaint_about("P6 4294967295 4294967295 255\n"), "4294967295 x 4294967295"));
  CHECK(contains(complaint_about("P6 70000 1 255\n" + std::string(210000, 'x')), "70000 x 1"));
  CHECK(contains(complaint_about("P6 0 5 255\n"), "no pixels"));
}

TEST_CASE("more pixels than the bytes can hold are refused before memory is asked for") {
  // 8 bytes behind the frame's mark: height and width.
  std::string small = jpeg(16, 16, Bytes(3 * 256, 1), TJPF_RGB, TJSAMP_444);
  const std::size_t frame = small.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  small[frame + 5] = small[frame + 7] = '\x20';  // 8,208 x 8,208
  CHECK(contains(complaint_about(small), "too few for its 8208 x 8208 pixels"));
  // The largest PNG that a few bytes may be: one bit a pixel, compressed 1,032 times.
  CHECK(read(png(4000, 4000, Bytes(16'000'000, 255), PNG_FORMAT_GRAY)).width == 4000);
}

TEST_CASE("what is no picture is told so, whatever its name says") {
  CHECK(contains(complaint_about(""), "empty"));
  CHECK(contains(complaint_about("GIF89a"), "not a PNG, JPEG or PPM file"));
  CHECK(contains(complaint_about("P6"), "cut off"));
  CHECK(contains(complaint_about("P6 # only a comment"), "cut off"));
  CHECK(contains(complaint_about("P6 -1 1 255\nxxx"), "byte 3"));
  CHECK(contains(complaint_about("P6 1 1 0\nxxx"), "damaged PPM"));
  CHECK(contains(complaint_about("P6 1 1 65536\nxxxxxx"), "damaged PPM"));
  CHECK(contains(complaint_about("P6 1 1 255\nxx"), "cut off"));
  CHECK(contains(complaint_about("P3 1 1 9 1 2 10 "), "damaged PPM"));
  CHECK(contains(complaint_about("P3 1 1 9 1 2"), "cut off"));
  TemporaryFolder folder;
  CHECK(contains(error_of([&] { read_picture(folder.path()); }), folder.path().string()));
  CHECK(contains(error_of([&] { read_picture(folder.path() / "none.png"); }), "none.png"));
}
