// A procedural data set in CIFAR-10's layout, for machines that cannot reach the real one. A class
// is an outline (disc, square, triangle, cross, ring) filled with a pattern (stripes or checks):
// what a convolutional net finds and a linear classifier does not, and what mirroring, cropping,
// contrast and standardization leave alone. Place, size, angle, colours, wavelength, clutter and
// noise vary; a faint tint by class is the one thing that colour tells.
//
// Only additions, multiplications and divisions, which IEEE 754 rounds one way (and this file is
// built with -ffp-contract=off): the same bytes everywhere, which sin and cos would not promise.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/philox_words.h"
#include "data/dataset.h"

namespace towers::data {
namespace {

constexpr int kOutlines = 5;
constexpr int kPixels = kImageSide * kImageSide;
constexpr int kBehind = 2;    // small rectangles behind the object; one more lies before it
constexpr float kTint = 14;   // grey levels, by class, in one channel of the stripes
constexpr float kNoise = 36;  // grey levels, half the width of the triangular distribution

// What is drawn for one image.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t image) : words_(seed, Stream::synthetic, image) {}

  std::uint32_t word() { return words_.next(); }
  float between(float low, float high) { return low + (high - low) * uniform(word()); }
  float sign() { return (word() & 1) != 0 ? 1.0f : -1.0f; }

 private:
  PhiloxWords words_;
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

// As std::clamp, in a form that compilers turn into vector instructions.
float clamp(float value, float low, float high) {
  return std::min(std::max(value, low), high);
}

// Triangle wave of period 1 between -1 and 1; phase above -64.
float wave(float phase) {
  const float shifted = phase + 64;
  const float fraction = shifted - static_cast<float>(static_cast<int>(shifted));
  return 4 * std::abs(fraction - 0.5f) - 1;
}

// Distance to the outline of half-width near 1 in its own axes, negative inside; exact at the
// outline and close enough to it for a soft edge.
template <int Outline>
float distance(float u, float v) {
  const float au = std::abs(u), av = std::abs(v), square = u * u + v * v;
  if constexpr (Outline == 0) return (square - 1) / 2;
  if constexpr (Outline == 1) return std::max(au, av) - 0.88f;
  if constexpr (Outline == 2) return std::max(v - 0.75f, 0.87f * au - 0.5f * v - 0.6f);
  if constexpr (Outline == 3) return std::max(std::min(au, av) - 0.36f, std::max(au, av) - 1.05f);
  if constexpr (Outline == 4) return std::max((square - 1.21f) / 2.2f, 0.25f - square);
}

struct Image {
  alignas(64) float values[3 * kPixels];  // R, G and B planes

  float* row(int channel, int y) { return values + channel * kPixels + y * kImageSide; }
};

void draw_background(Image& image, const Color& color, Draws& draws) {
  for (int c = 0; c < 3; ++c) {
    const float across = draws.between(-1.2f, 1.2f), down = draws.between(-1.2f, 1.2f);
    for (int y = 0; y < kImageSide; ++y) {
      float* row = image.row(c, y);
      for (int x = 0; x < kImageSide; ++x)
        row[x] = color.channel[c] + across * (static_cast<float>(x) - 15.5f) +
                 down * (static_cast<float>(y) - 15.5f);
    }
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
      std::fill_n(image.row(c, y) + left, width, color.channel[c]);
}

template <int Label>
void draw_object(Image& image, const Color& stripe, const Color& gap, Draws& draws) {
  constexpr int kOutline = Label % kOutlines;
  constexpr bool kChecks = Label >= kOutlines;
  const float center_x = 15.5f + draws.between(-3, 3), center_y = 15.5f + draws.between(-3, 3);
  const float radius = draws.between(7, 10.5f), shrink = 1 / radius;
  const Direction axis = draw_direction(draws, 0.2f);
  const Direction along = draw_direction(draws, 1);
  const float frequency = 1 / draws.between(3.6f, 5.2f);
  const float phase = draws.between(0, 1), cross_phase = draws.between(0, 1);
  for (int y = 0; y < kImageSide; ++y) {
    float cover[kImageSide], mix[kImageSide];
    for (int x = 0; x < kImageSide; ++x) {
      const float dx = static_cast<float>(x) - center_x, dy = static_cast<float>(y) - center_y;
      const float u = (axis.x * dx + axis.y * dy) * shrink;
      const float v = (axis.x * dy - axis.y * dx) * shrink;
      cover[x] = clamp(0.5f - distance<kOutline>(u, v) * radius, 0, 1);
      float pattern = 2 * wave((along.x * dx + along.y * dy) * frequency + phase);
      if constexpr (kChecks)
        pattern *= 1.5f * wave((along.x * dy - along.y * dx) * frequency + cross_phase);
      mix[x] = 0.5f + 0.5f * clamp(pattern, -1, 1);
    }
    for (int c = 0; c < 3; ++c) {
      float* row = image.row(c, y);
      for (int x = 0; x < kImageSide; ++x) {
        const float color = gap.channel[c] + mix[x] * (stripe.channel[c] - gap.channel[c]);
        row[x] += cover[x] * (color - row[x]);
      }
    }
  }
}

constexpr decltype(&draw_object<0>) kDrawObject[kClasses] = {
    draw_object<0>, draw_object<1>, draw_object<2>, draw_object<3>, draw_object<4>,
    draw_object<5>, draw_object<6>, draw_object<7>, draw_object<8>, draw_object<9>};

// Adds noise to the three planes and rounds them: a value takes the sum of two random bytes. There
// are 3072 values to an image, so the bytes come from a cheaper generator in lanes that vectorize:
// Marsaglia, "Xorshift RNGs" (Journal of Statistical Software 8, 2003), seeded by Philox.
void write_pixels(const Image& image, Draws& draws, std::uint8_t* out) {
  constexpr int kLanes = 64, kValues = 3 * kPixels;
  std::uint32_t lane[kLanes];
  for (std::uint32_t& state : lane) state = draws.word() | 1;
  for (int i = 0; i < kValues; i += 2 * kLanes) {
    for (std::uint32_t& state : lane) {
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
    }
    for (int half = 0; half < 2; ++half)
      for (int j = 0; j < kLanes; ++j) {
        const std::uint32_t bytes = lane[j] >> (16 * half);
        const int noise = static_cast<int>((bytes & 255) + (bytes >> 8 & 255)) - 255;
        const int at = i + half * kLanes + j;
        const float value = image.values[at] + kNoise / 255 * static_cast<float>(noise);
        out[at] = static_cast<std::uint8_t>(static_cast<int>(clamp(value, 0, 255) + 0.5f));
      }
  }
}

void make_record(std::uint64_t seed, std::uint64_t index, std::uint8_t* record) {
  const int label = static_cast<int>(index % kClasses);
  Draws draws(seed, index);
  Color background;
  for (float& channel : background.channel) channel = draws.between(70, 185);
  const float sign = draws.sign();
  Color stripe = shifted(background, sign * draws.between(40, 80), 25, draws);
  const Color gap = shifted(background, -sign * draws.between(5, 40), 25, draws);
  stripe.channel[label % 3] += kTint * (label % 2 == 0 ? 1.0f : -1.0f);

  Image image;
  draw_background(image, background, draws);
  for (int i = 0; i < kBehind; ++i)
    draw_rectangle(image, shifted(background, draws.between(-60, 60), 40, draws), draws);
  kDrawObject[label](image, stripe, gap, draws);
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
