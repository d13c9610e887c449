#include <png.h>

#include "core/error.h"
#include "data/picture_formats.h"

namespace towers::data {
namespace {

// Deflate makes at most 1,032 bytes of one, and a byte holds up to 8 pixels of one bit.
constexpr std::uint64_t kMostPngPixelsPerByte = 8 * 1032;

// libpng's simplified interface: no callbacks and no longjmp through our frames.
struct Image : png_image {
  Image() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~Image() { png_image_free(this); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  [[noreturn]] void fail() const { throw Error(std::string("damaged PNG: ") + message); }
};

}  // namespace

Picture decode_png(const std::string& content) {
  Image image;
  if (png_image_begin_read_from_memory(&image, content.data(), content.size()) == 0) image.fail();
  Picture picture = blank_picture(image.width, image.height, content.size(), kMostPngPixelsPerByte);
  image.format = PNG_FORMAT_RGB;
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, picture.rgb.data(), 3 * picture.width, nullptr) == 0)
    image.fail();
  return picture;
}

}  // namespace towers::data
