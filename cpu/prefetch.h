#pragma once
// Asking for memory before it is needed: what is kept between passes lies too far apart, or comes
// too late, for the processor to see by itself.

#include <hwy/cache_control.h>

#include <cstddef>

#include "cpu/view.h"

namespace towers::cpu {

constexpr std::ptrdiff_t kLine = 64 / sizeof(float);  // values of a cache line

// `rows` x `columns` pixels of `channels` values, from (y, x) on.
inline void prefetch_pixels(ConstView view, int y, int rows, int x, int columns, int channels) {
  for (int i = y; i < y + rows; ++i)
    for (int j = x; j < x + columns; ++j)
      for (std::ptrdiff_t c = 0; c < channels; c += kLine) hwy::Prefetch(view.at(i, j) + c);
}

// One of `parts` equal shares of the memory that `images` images and their padding lie in.
inline void prefetch_share(ConstView view, int images, int part, int parts) {
  const std::ptrdiff_t size = view.image * images;
  for (std::ptrdiff_t i = size * part / parts; i < size * (part + 1) / parts; i += kLine)
    hwy::Prefetch(view.data + i);
}

}  // namespace towers::cpu
