#pragma once
// Max pooling for one item of work: N channels of one pixel. kSize and kStride are the window's
// where they are known when this is compiled, else 0.

#include <cstddef>
#include <cstdint>

#include "core/host_device.h"
#include "cuda/lanes.h"
#include "cuda/window.h"

namespace towers::cuda {

inline constexpr int kLargestPoolSize = 15;
inline constexpr std::uint8_t kNoWinner = 255;  // beyond every position in a window

// Channels c .. c + N - 1 of pixel (y, x) of an image of a batch.
struct PoolPlace {
  int image, y, x, c;
};

// `row` counts the rows of all images of `extent`, `item` the groups of N channels in one. False
// where there is no such place.
template <int N>
TOWERS_HD inline bool find_place(int batch, const Extent& extent, int row, int item,
                                 PoolPlace& place) {
  const int groups = extent.channels / N;
  if (row >= batch * extent.height || item >= extent.width * groups) return false;
  place.image = row / extent.height;
  place.y = row - place.image * extent.height;
  place.x = item / groups;
  place.c = (item - place.x * groups) * N;
  return true;
}

TOWERS_HD inline std::size_t pool_index(const Extent& extent, int image, int y, int x, int c) {
  const int row = image * extent.height + y;
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(extent.width * extent.channels) +
         static_cast<std::size_t>(x * extent.channels + c);
}

// One value of a window.
template <class W, int N>
struct PoolTap {
  Lanes<W, N> values;
  int position;
};

template <class W, int N>
struct PoolBest {
  Lanes<W, N> value;
  Lanes<std::uint8_t, N> winner;

  TOWERS_HD void start(const PoolTap<W, N>& tap) {
    value = tap.values;
    winner = filled<N>(static_cast<std::uint8_t>(tap.position));
  }
  // NaN takes the place of any number, and stays.
  TOWERS_HD void consider(const PoolTap<W, N>& tap) {
    TOWERS_UNROLL
    for (int i = 0; i < N; ++i) {
      const bool wins = !(tap.values.at[i] <= value.at[i]) && value.at[i] == value.at[i];
      value.at[i] = wins ? tap.values.at[i] : value.at[i];
      winner.at[i] = wins ? static_cast<std::uint8_t>(tap.position) : winner.at[i];
    }
  }
};

TOWERS_HD inline int clamp_to(int value, int end) {
  return value < 0 ? 0 : value < end ? value : end - 1;
}

// The largest in the window of an output; values_at(image, y, x, c) gives N channels of an input
// pixel. In place of padding comes the nearest value of the window that is none, with its own
// position: it can't win again, and no load depends on where the window lies.
template <class W, int N, int kSize, class ValuesAt>
TOWERS_HD inline PoolBest<W, N> largest_in_window(const WindowShape& s, const PoolPlace& place,
                                                  const ValuesAt& values_at) {
  const int size = kSize != 0 ? kSize : s.size;
  const int top = place.y * s.stride - s.pad_top, left = place.x * s.stride - s.pad_left;
  const auto tap_at = [&](int ky, int kx) {
    const int y = clamp_to(top + ky, s.input.height), x = clamp_to(left + kx, s.input.width);
    return PoolTap<W, N>{values_at(place.image, y, x, place.c), (y - top) * size + (x - left)};
  };
  PoolBest<W, N> best;
  if constexpr (kSize != 0) {  // all loads are under way before the first comparison
    PoolTap<W, N> taps[kSize * kSize];
    TOWERS_UNROLL
    for (int k = 0; k < kSize * kSize; ++k) taps[k] = tap_at(k / kSize, k % kSize);
    best.start(taps[0]);
    TOWERS_UNROLL
    for (int k = 1; k < kSize * kSize; ++k) best.consider(taps[k]);
  } else {
    best.start(tap_at(0, 0));
    for (int ky = 0; ky < size; ++ky)
      for (int kx = 0; kx < size; ++kx) best.consider(tap_at(ky, kx));
  }
  return best;
}

template <int N, int kSize, class T>
TOWERS_HD inline PoolBest<Wide<T>, N> max_pool_at(const WindowShape& s, const PoolPlace& place,
                                                  bool relu_input, const T* input) {
  PoolBest<Wide<T>, N> best =
      largest_in_window<Wide<T>, N, kSize>(s, place, [&](int image, int y, int x, int c) {
        return load<N>(input + pool_index(s.input, image, y, x, c));
      });
  TOWERS_UNROLL
  for (int i = 0; i < N; ++i)
    if (relu_input && best.value.at[i] <= 0) best.winner.at[i] = kNoWinner;
  return best;
}

template <int N, int kSize, class T>
TOWERS_HD inline void max_pool_item(const WindowShape& s, int row, int item, bool relu_input,
                                    const T* input, T* output, std::uint8_t* winners) {
  PoolPlace place;
  if (!find_place<N>(s.batch, s.output, row, item, place)) return;
  const PoolBest<Wide<T>, N> best = max_pool_at<N, kSize>(s, place, relu_input, input);
  const std::size_t to = pool_index(s.output, place.image, place.y, place.x, place.c);
  store(output + to, best.value);
  if (winners != nullptr) store(winners + to, best.winner);
}

// One window that an input value may have won.
template <class W, int N>
struct PoolShare {
  Lanes<std::uint8_t, N> winner = filled<N>(kNoWinner);
  Lanes<W, N> gradient = filled<N>(W{0});
  int position = 0;  // of the input value in it

  TOWERS_HD void add_to(Lanes<W, N>& sum) const {
    TOWERS_UNROLL
    for (int i = 0; i < N; ++i)
      sum.at[i] = winner.at[i] == position ? sum.at[i] + gradient.at[i] : sum.at[i];
  }
};

// The gradient of an input: the sum over the windows that it won, in their order.
// gradient_at(image, y, x, c) gives N channels of an output pixel's gradient.
template <class W, int N, int kSize, int kStride, class GradientAt>
TOWERS_HD inline Lanes<W, N> sum_of_won(const WindowShape& s, const PoolPlace& place,
                                        const std::uint8_t* winners,
                                        const GradientAt& gradient_at) {
  const int size = kSize != 0 ? kSize : s.size, stride = kStride != 0 ? kStride : s.stride;
  const int padded_y = place.y + s.pad_top, padded_x = place.x + s.pad_left;
  const int last_y = padded_y / stride, last_x = padded_x / stride;
  const auto share_of = [&](int back_y, int back_x) {
    const int y = last_y - back_y, x = last_x - back_x;
    const int ky = padded_y - y * stride, kx = padded_x - x * stride;
    PoolShare<W, N> share;
    share.position = ky * size + kx;
    if (y >= 0 && y < s.output.height && ky < size && x >= 0 && x < s.output.width && kx < size) {
      share.winner = load<N>(winners + pool_index(s.output, place.image, y, x, place.c));
      share.gradient = gradient_at(place.image, y, x, place.c);
    }
    return share;
  };
  Lanes<W, N> sum = filled<N>(W{0});
  if constexpr (kSize != 0) {
    constexpr int kReach = (kSize + kStride - 1) / kStride;  // windows around a value, by axis
    PoolShare<W, N> shares[kReach * kReach];
    TOWERS_UNROLL
    for (int k = 0; k < kReach * kReach; ++k)
      shares[k] = share_of(kReach - 1 - k / kReach, kReach - 1 - k % kReach);
    TOWERS_UNROLL
    for (int k = 0; k < kReach * kReach; ++k) shares[k].add_to(sum);
  } else {
    const int reach = (size + stride - 1) / stride;
    for (int back_y = reach - 1; back_y >= 0; --back_y)
      for (int back_x = reach - 1; back_x >= 0; --back_x) share_of(back_y, back_x).add_to(sum);
  }
  return sum;
}

template <int N, int kSize, int kStride, class T>
TOWERS_HD inline Lanes<Wide<T>, N> max_pool_gradient_at(const WindowShape& s,
                                                        const PoolPlace& place, const T* d_output,
                                                        const std::uint8_t* winners) {
  return sum_of_won<Wide<T>, N, kSize, kStride>(
      s, place, winners, [&](int image, int y, int x, int c) {
        return load<N>(d_output + pool_index(s.output, image, y, x, c));
      });
}

template <int N, int kSize, int kStride, class T>
TOWERS_HD inline void max_pool_backward_item(const WindowShape& s, int row, int item,
                                             const T* d_output, const std::uint8_t* winners,
                                             T* d_input) {
  PoolPlace place;
  if (!find_place<N>(s.batch, s.input, row, item, place)) return;
  store(d_input + pool_index(s.input, place.image, place.y, place.x, place.c),
        max_pool_gradient_at<N, kSize, kStride>(s, place, d_output, winners));
}

}  // namespace towers::cuda
