// https://netpbm.sourceforge.net/doc/ppm.html

#include <cctype>
#include <cstddef>

#include "core/error.h"
#include "data/picture_formats.h"

namespace towers::data {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& content) : content_(content) {}

  // The next decimal number, behind blanks and comments.
  std::uint64_t number() {
    skip_blanks();
    if (at_ == content_.size() || !is_digit()) fail();
    std::uint64_t value = 0;
    for (; at_ < content_.size() && is_digit(); ++at_) {
      value = 10 * value + static_cast<std::uint64_t>(content_[at_] - '0');
      if (value > 0xffffffffU) fail();
    }
    return value;
  }

  void one_blank() {
    if (at_ == content_.size() || !is_blank()) fail();
    ++at_;
  }

  std::uint64_t sample(std::size_t bytes) {
    if (content_.size() - at_ < bytes) fail();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | static_cast<unsigned char>(content_[at_++]);
    return value;
  }

  std::size_t left() const { return content_.size() - at_; }

  [[noreturn]] void fail() const {
    throw Error(at_ == content_.size()
                    ? "damaged PPM: it is cut off"
                    : "damaged PPM: byte " + std::to_string(at_) + " is not what belongs there");
  }

 private:
  bool is_digit() const { return std::isdigit(static_cast<unsigned char>(content_[at_])) != 0; }
  bool is_blank() const { return std::isspace(static_cast<unsigned char>(content_[at_])) != 0; }
  void skip_blanks() {
    for (; at_ < content_.size(); ++at_) {
      if (content_[at_] == '#')
        while (at_ + 1 < content_.size() && content_[at_] != '\n') ++at_;
      else if (!is_blank())
        return;
    }
  }

  const std::string& content_;
  std::size_t at_ = 2;  // behind P6 or P3
};

}  // namespace

Picture decode_ppm(const std::string& content) {
  const bool binary = content.starts_with("P6");
  Reader reader(content);
  const std::uint64_t width = reader.number(), height = reader.number();
  const std::uint64_t largest = reader.number();
  if (largest == 0 || largest > 65535) reader.fail();
  if (binary) reader.one_blank();
  const std::size_t bytes = largest > 255 ? 2 : 1;
  // Before the memory for a size that the file does not have.
  const std::uint64_t least = binary ? bytes : 2;  // of each sample
  if (width <= 65535 && height <= 65535 && 3 * width * height * least > reader.left() + 1)
    throw Error("damaged PPM: it is cut off");
  Picture picture = blank_picture(width, height, content.size(), 1);  // a byte or more each
  for (std::uint8_t& value : picture.rgb) {
    const std::uint64_t sample = binary ? reader.sample(bytes) : reader.number();
    if (sample > largest) reader.fail();
    value = static_cast<std::uint8_t>((sample * 255 + largest / 2) / largest);
  }
  return picture;
}

}  // namespace towers::data
