#pragma once
// Activations or gradients of images where they lie: images, rows and pixels may be further apart
// than their values, for the zero padding and the strides that a convolution wants around them.

#include <algorithm>
#include <cstddef>

#include "core/net.h"

namespace towers::cpu {

// Element (y, x, c) of image i is data[i * image + y * row + x * pixel + c].
template <class T>
struct BasicView {
  T* data = nullptr;
  std::ptrdiff_t row = 0, pixel = 0, image = 0;

  T* at(std::ptrdiff_t y, std::ptrdiff_t x) const { return data + y * row + x * pixel; }
  BasicView of(std::ptrdiff_t i) const { return {data + i * image, row, pixel, image}; }
  BasicView from(std::ptrdiff_t y, std::ptrdiff_t x) const { return {at(y, x), row, pixel, image}; }
  operator BasicView<const T>() const { return {data, row, pixel, image}; }
};
using View = BasicView<float>;
using ConstView = BasicView<const float>;

template <class T>
BasicView<T> contiguous(T* data, const Extent& extent) {
  return {data, static_cast<std::ptrdiff_t>(extent.width) * extent.channels, extent.channels,
          static_cast<std::ptrdiff_t>(extent.size())};
}

inline void copy_image(ConstView from, View to, const Extent& extent) {
  for (int y = 0; y < extent.height; ++y)
    for (int x = 0; x < extent.width; ++x) std::copy_n(from.at(y, x), extent.channels, to.at(y, x));
}

// How images are laid out in a buffer, one after the other: their pixels `dilation` apart, zeros
// between and around them.
struct Layout {
  Extent extent;
  int top = 0, left = 0, bottom = 0, right = 0;
  int dilation = 1;
  std::size_t beyond = 0;  // zeros behind the last image

  bool is_contiguous() const { return *this == Layout{extent}; }
  std::ptrdiff_t row() const {
    return static_cast<std::ptrdiff_t>(left + (extent.width - 1) * dilation + 1 + right) *
           extent.channels;
  }
  std::size_t size() const {
    return static_cast<std::size_t>(top + (extent.height - 1) * dilation + 1 + bottom) *
           static_cast<std::size_t>(row());
  }
  // From one image to the next, a whole number of cache lines.
  std::size_t stride() const { return (size() + 15) / 16 * 16; }
  std::size_t buffer_size(int images) const {
    return stride() * static_cast<std::size_t>(images) + beyond;
  }
  // The images within a buffer, `image` values apart.
  template <class T>
  BasicView<T> view(T* buffer, std::ptrdiff_t image) const {
    return {buffer + top * row() + static_cast<std::ptrdiff_t>(left) * extent.channels,
            dilation * row(), static_cast<std::ptrdiff_t>(dilation) * extent.channels, image};
  }
  bool operator==(const Layout&) const = default;
};

}  // namespace towers::cpu
