#pragma once
// The decoders behind data/picture.h. Each takes the whole content of a file of its format and
// throws Error with what is wrong, without the path.

#include <string>

#include "data/picture.h"

namespace towers::data {

Picture decode_png(const std::string& content);
Picture decode_jpeg(const std::string& content);
Picture decode_ppm(const std::string& content);  // P6 (binary) and P3 (text)

// A picture of this size with memory for its pixels; Error where it is empty or beyond the limits,
// or where the file's `bytes` cannot hold so many at `most_per_byte` of them: it was cut off, or
// damaged.
Picture blank_picture(std::uint64_t width, std::uint64_t height, std::uint64_t bytes,
                      std::uint64_t most_per_byte);

}  // namespace towers::data
