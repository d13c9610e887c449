#include "data/picture.h"

#include "core/error.h"
#include "data/file.h"
#include "data/picture_formats.h"

namespace towers::data {
namespace {

Picture decode(const std::string& content) {
  if (content.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(content);
  if (content.starts_with("\xff\xd8\xff")) return decode_jpeg(content);
  if (content.starts_with("P6") || content.starts_with("P3")) return decode_ppm(content);
  throw Error(content.empty() ? "the file is empty"
                              : "it is not a PNG, JPEG or PPM file; convert it to one of these");
}

}  // namespace

Picture blank_picture(std::uint64_t width, std::uint64_t height, std::uint64_t bytes,
                      std::uint64_t most_per_byte) {
  constexpr std::uint64_t kSide = kMostPictureSide;
  const bool sides = width <= kSide && height <= kSide;
  if (!sides || width * height > std::uint64_t{kMostPicturePixels})
    throw Error("it is " + std::to_string(width) + " x " + std::to_string(height) +
                " pixels large; up to " + std::to_string(kMostPicturePixels / 1000000) +
                " million are read, " + std::to_string(kMostPictureSide) + " to a side");
  if (width == 0 || height == 0) throw Error("it has no pixels");
  if (width * height / most_per_byte > bytes)
    throw Error("damaged: " + std::to_string(bytes) + " bytes are too few for its " +
                std::to_string(width) + " x " + std::to_string(height) + " pixels");
  return {static_cast<int>(width), static_cast<int>(height),
          std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height))};
}

Picture read_picture(const std::filesystem::path& path) {
  constexpr std::uint64_t kMostBytes = 1'000'000'000;  // more than any picture within the limits
  const std::uint64_t bytes = file_size(open_to_read(path), path);
  try {
    if (bytes > kMostBytes) throw Error("it is larger than 1 GB");
    return decode(read_whole_file(path));
  } catch (const Error& error) {
    throw Error("cannot read the picture " + path.string() + ": " + error.what());
  }
}

}  // namespace towers::data
