#pragma once
// The training input one stage after the other, in double precision, as TensorFlow's graph has
// them: what distort() folds into one multiply-add must give these values.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/distortion.h"

namespace towers::test {

using Image = std::vector<double>;  // 24 x 24 x 3, HWC

inline std::size_t at(int y, int x, int c) {
  return static_cast<std::size_t>((y * kCropSide + x) * 3 + c);
}

inline Image crop(const std::uint8_t* planes, int top, int left) {
  Image image(3 * kCropPixels);
  for (int y = 0; y < kCropSide; ++y)
    for (int x = 0; x < kCropSide; ++x)
      for (int c = 0; c < 3; ++c) image[at(y, x, c)] = planes[c * 1024 + (top + y) * 32 + left + x];
  return image;
}

inline Image flip_left_right(const Image& image) {
  Image result(image.size());
  for (int y = 0; y < kCropSide; ++y)
    for (int x = 0; x < kCropSide; ++x)
      for (int c = 0; c < 3; ++c) result[at(y, x, c)] = image[at(y, kCropSide - 1 - x, c)];
  return result;
}

inline Image adjust_brightness(Image image, double delta) {
  for (double& x : image) x += delta;
  return image;
}

inline Image adjust_contrast(Image image, double factor) {
  for (std::size_t c = 0; c < 3; ++c) {
    double mean = 0;
    for (std::size_t i = c; i < image.size(); i += 3) mean += image[i] / kCropPixels;
    for (std::size_t i = c; i < image.size(); i += 3) image[i] = (image[i] - mean) * factor + mean;
  }
  return image;
}

inline double mean(const Image& image) {
  double sum = 0;
  for (const double x : image) sum += x;
  return sum / static_cast<double>(image.size());
}

inline double stddev(const Image& image) {
  const double center = mean(image);
  double sum = 0;
  for (const double x : image) sum += (x - center) * (x - center);
  return std::sqrt(sum / static_cast<double>(image.size()));
}

inline Image per_image_standardization(Image image) {
  const double center = mean(image);
  const double scale = std::max(stddev(image), 1 / std::sqrt(static_cast<double>(image.size())));
  for (double& x : image) x = (x - center) / scale;
  return image;
}

inline Image staged(const std::uint8_t* planes, const Distortion& d, double brightness) {
  Image image = crop(planes, d.top, d.left);
  if (d.flip) image = flip_left_right(image);
  return per_image_standardization(
      adjust_contrast(adjust_brightness(std::move(image), brightness), double{d.contrast}));
}

}  // namespace towers::test
