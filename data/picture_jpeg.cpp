#include <turbojpeg.h>

#include <memory>

#include "core/error.h"
#include "data/picture_formats.h"

namespace towers::data {
namespace {

// A block of 8 x 8 takes a bit or more.
constexpr std::uint64_t kMostJpegPixelsPerByte = 8 * 64;

struct Destroy {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};
using Decoder = std::unique_ptr<void, Destroy>;

[[noreturn]] void fail(const Decoder& decoder) {
  throw Error(std::string("damaged JPEG: ") + tjGetErrorStr2(decoder.get()));
}

}  // namespace

Picture decode_jpeg(const std::string& content) {
  const Decoder decoder(tjInitDecompress());
  if (!decoder) throw Error(std::string("the JPEG decoder does not start: ") + tjGetErrorStr());
  const auto* bytes = reinterpret_cast<const unsigned char*>(content.data());
  int width = 0, height = 0, sampling = 0, colors = 0;
  if (tjDecompressHeader3(decoder.get(), bytes, content.size(), &width, &height, &sampling,
                          &colors) != 0)
    fail(decoder);
  if (colors == TJCS_CMYK || colors == TJCS_YCCK)
    throw Error("its colors are CMYK; save it as RGB");
  Picture picture =
      blank_picture(static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height),
                    content.size(), kMostJpegPixelsPerByte);
  // A file that is cut off is only worth a warning to the library, and gray where data lacks.
  if (tjDecompress2(decoder.get(), bytes, content.size(), picture.rgb.data(), width, 3 * width,
                    height, TJPF_RGB,
                    TJFLAG_STOPONWARNING | TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) != 0)
    fail(decoder);
  return picture;
}

}  // namespace towers::data
