// A procedural data set in CIFAR-10's layout, for machines that cannot reach the real one. A class
// is an outline (disc, square, triangle, cross, ring) filled with a pattern (stripes or checks):
// what a convolutional net finds and a linear classifier does not, and what mirroring, cropping,
// contrast and standardization leave alone. Place, size, angle, colours, wavelength, clutter and
// noise vary; a faint tint by class is the one thing that colour tells.
//
// Only additions, multiplications, divisions and square roots, which IEEE 754 rounds one way (and
// the file is built with -ffp-contract=off): the same bytes everywhere, where sin and cos might not
// be.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/philox.h"
#include "data/dataset.h"

namespace towers::data {
namespace {

constexpr int kOutlines = 5;
constexpr int kPixels = kImageSide * kImageSide;
constexpr int kClutter = 3;   // small rectangles behind or before the object
constexpr float kTint = 14;   // grey levels
constexpr float kNoise = 36;  // grey levels, half the width of the triangular distribution

// The random words of one image.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t image) : seed_(seed), image_(image) {}

  std::uint32_t word() {
    if (used_ == 4) {
      block_ = philox(seed_, Stream::synthetic, image_, blocks_++);
      used_ = 0;
    }
    return block_.word[used_++];
  }
  float between(float low, float high) { return low + (high - low) * uniform(word()); }
  float sign() { return (word() & 1) != 0 ? 1.0f : -1.0f; }

 private:
  std::uint64_t seed_, image_;
  std::uint32_t blocks_ = 0;
  PhiloxBlock block_{};
  int used_ = 4;
};

struct Color {
  float channel[3];
};

struct Direction {
  float x, y;
};

// A unit vector at an angle of up to 2 atan(reach) from the x axis, by the rational parametrization
// of the circle; reach 1 is a quarter turn either way, all that a line's direction needs.
Direction draw_direction(Draws& draws, float reach) {
  const float t = draws.between(-reach, reach);
  return {(1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)};
}

Color shifted(const Color& color, float by, float spread, Draws& draws) {
  Color result;
  for (int c = 0; c < 3; ++c)
    result.channel[c] = color.channel[c] + by + draws.between(-spread, spread);
  return result;
}

// Triangle wave of period 1 between -1 and 1; phase above -64.
float wave(float phase) {
  const float shifted = phase + 64;
  const float fraction = shifted - static_cast<float>(static_cast<int>(shifted));
  return 4 * std::abs(fraction - 0.5f) - 1;
}

// Signed distance to the outline of half-width 1 in its own axes, negative inside.
template <int Outline>
float distance(float u, float v) {
  const float au = std::abs(u), av = std::abs(v);
  if constexpr (Outline == 0) return std::sqrt(u * u + v * v) - 1;
  if constexpr (Outline == 1) return std::max(au, av) - 0.88f;
  if constexpr (Outline == 2) return std::max(v - 0.75f, 0.87f * au - 0.5f * v - 0.6f);
  if constexpr (Outline == 3) return std::max(std::min(au, av) - 0.36f, std::max(au, av) - 1.05f);
  if constexpr (Outline == 4) return std::abs(std::sqrt(u * u + v * v) - 0.8f) - 0.3f;
}

struct Image {
  float channel[3][kPixels];
};

void draw_background(Image& image, const Color& color, Draws& draws) {
  for (int c = 0; c < 3; ++c) {
    const float across = draws.between(-1.2f, 1.2f), down = draws.between(-1.2f, 1.2f);
    for (int y = 0; y < kImageSide; ++y)
      for (int x = 0; x < kImageSide; ++x)
        image.channel[c][y * kImageSide + x] = color.channel[c] +
                                               across * (static_cast<float>(x) - 15.5f) +
                                               down * (static_cast<float>(y) - 15.5f);
  }
}

void draw_rectangle(Image& image, const Color& color, Draws& draws) {
  const int width = 3 + static_cast<int>(uniform_below(draws.word(), 6));
  const int height = 3 + static_cast<int>(uniform_below(draws.word(), 6));
  const int left = static_cast<int>(
      uniform_below(draws.word(), static_cast<std::uint32_t>(kImageSide - width + 1)));
  const int top = static_cast<int>(
      uniform_below(draws.word(), static_cast<std::uint32_t>(kImageSide - height + 1)));
  for (int c = 0; c < 3; ++c)
    for (int y = top; y < top + height; ++y)
      std::fill_n(&image.channel[c][y * kImageSide + left], width, color.channel[c]);
}

template <int Outline>
void draw_object(Image& image, bool checks, const Color& light, const Color& dark, Draws& draws) {
  const float center_x = 15.5f + draws.between(-3, 3), center_y = 15.5f + draws.between(-3, 3);
  const float radius = draws.between(7, 10.5f);
  const Direction axis = draw_direction(draws, 0.2f);
  const Direction along = draw_direction(draws, 1);
  const float frequency = 1 / draws.between(3.6f, 5.2f);
  const float phase = draws.between(0, 1), cross_phase = draws.between(0, 1);
  for (int y = 0; y < kImageSide; ++y)
    for (int x = 0; x < kImageSide; ++x) {
      const float dx = static_cast<float>(x) - center_x, dy = static_cast<float>(y) - center_y;
      const float u = (axis.x * dx + axis.y * dy) / radius;
      const float v = (axis.x * dy - axis.y * dx) / radius;
      const float cover = std::clamp(0.5f - distance<Outline>(u, v) * radius, 0.0f, 1.0f);
      const float stripes = wave((along.x * dx + along.y * dy) * frequency + phase);
      const float across = wave((along.x * dy - along.y * dx) * frequency + cross_phase);
      const float pattern = checks ? std::clamp(3 * stripes * across, -1.0f, 1.0f)
                                   : std::clamp(2 * stripes, -1.0f, 1.0f);
      const float mix = 0.5f + 0.5f * pattern;
      for (int c = 0; c < 3; ++c) {
        float& value = image.channel[c][y * kImageSide + x];
        const float color = dark.channel[c] + mix * (light.channel[c] - dark.channel[c]);
        value += cover * (color - value);
      }
    }
}

constexpr decltype(&draw_object<0>) kDrawObject[kOutlines] = {
    draw_object<0>, draw_object<1>, draw_object<2>, draw_object<3>, draw_object<4>};

// Adds noise of a triangular distribution, four values to a Philox block.
void write_pixels(const Image& image, Draws& draws, std::uint8_t* out) {
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < kPixels; ++i) {
      const std::uint32_t word = draws.word();
      const float noise = static_cast<float>((word & 0xffff) + (word >> 16)) / 65536.0f - 1.0f;
      const float value = image.channel[c][i] + kNoise * noise;
      *out++ = static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
    }
}

void make_record(std::uint64_t seed, std::uint64_t index, std::uint8_t* record) {
  const int label = static_cast<int>(index % kClasses);
  Draws draws(seed, index);
  Color background;
  for (float& channel : background.channel) channel = draws.between(70, 185);
  const float sign = draws.sign();
  Color light = shifted(background, sign * draws.between(40, 80), 25, draws);
  const Color dark = shifted(background, -sign * draws.between(5, 40), 25, draws);
  light.channel[label % 3] += kTint * (label % 2 == 0 ? 1.0f : -1.0f);

  Image image;
  draw_background(image, background, draws);
  for (int i = 0; i < kClutter - 1; ++i)
    draw_rectangle(image, shifted(background, draws.between(-60, 60), 40, draws), draws);
  kDrawObject[label % kOutlines](image, label >= kOutlines, light, dark, draws);
  draw_rectangle(image, shifted(background, draws.between(-60, 60), 40, draws), draws);

  record[0] = static_cast<std::uint8_t>(label);
  write_pixels(image, draws, record + 1);
}

}  // namespace

Dataset make_synthetic(Split split, std::uint64_t seed) {
  // Test images follow the training images in one stream.
  const std::uint64_t first = split == Split::train ? 0 : kTrainExamples;
  const std::size_t size = split == Split::train ? kTrainExamples : kTestExamples;
  Dataset dataset;
  dataset.description = "synthetic";
  dataset.records.resize(size * kRecordBytes);
  for (std::size_t i = 0; i < size; ++i)
    make_record(seed, first + i, &dataset.records[i * kRecordBytes]);
  return dataset;
}

}  // namespace towers::data
