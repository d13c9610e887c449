#pragma once
// Pictures in PNG, JPEG and PPM files.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace towers::data {

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;  // row by row, three bytes a pixel
};

constexpr int kMostPictureSide = 65535;                   // as JPEG's own limit
constexpr std::int64_t kMostPicturePixels = 100'000'000;  // 300 MB once unpacked

// The format is told by the content, whatever the name says. Gray becomes RGB; what is transparent
// is laid on white; 16 bits become 8. The orientation that a camera notes (EXIF) is not applied.
// Throws Error with the path: no such format, damaged or cut off, larger than the limits above.
Picture read_picture(const std::filesystem::path& path);

}  // namespace towers::data
