#pragma once
// Convolution from its definition, for one item of work. Plain loops, but every value that is
// loaded is used several times: kRun pixels of a row share the weights, and N channels the rest.

#include <cstddef>

#include "core/host_device.h"
#include "cuda/elementwise_math.h"
#include "cuda/lanes.h"
#include "cuda/window.h"

namespace towers::cuda {

inline constexpr int kRun = 4;  // pixels of a row that one thread takes

TOWERS_HD constexpr int runs_in(int width) {
  return (width + kRun - 1) / kRun;
}

// First channel of pixel x of `row`, which counts the rows of all images.
TOWERS_HD inline std::size_t pixel_index(const Extent& extent, int row, int x) {
  return (static_cast<std::size_t>(row) * static_cast<std::size_t>(extent.width) +
          static_cast<std::size_t>(x)) *
         static_cast<std::size_t>(extent.channels);
}
// First output of input i at (ky, kx), in HWIO.
TOWERS_HD inline std::size_t weight_index(const WindowShape& s, int ky, int kx, int i) {
  return (static_cast<std::size_t>(ky * s.size + kx) * static_cast<std::size_t>(s.input.channels) +
          static_cast<std::size_t>(i)) *
         static_cast<std::size_t>(s.output.channels);
}

// Pixels `at` of a row that a run of kRun pixels needs for one tap; negative where there is none.
struct RunOfPixels {
  int at[kRun];
};

template <int N, class T>
TOWERS_HD inline void convolve_tap(const WindowShape& s, int input_row, const RunOfPixels& run,
                                   const T* input, const T* weights, Lanes<Wide<T>, N>* sums) {
  const std::size_t outputs = static_cast<std::size_t>(s.output.channels);
  for (int i = 0; i < s.input.channels; ++i) {
    const Lanes<Wide<T>, N> weight = load<N>(weights + static_cast<std::size_t>(i) * outputs);
    TOWERS_UNROLL
    for (int p = 0; p < kRun; ++p) {
      if (run.at[p] < 0) continue;
      const Wide<T> value =
          widen(input[pixel_index(s.input, input_row, run.at[p]) + static_cast<std::size_t>(i)]);
      TOWERS_UNROLL
      for (int k = 0; k < N; ++k) sums[p].at[k] += value * weight.at[k];
    }
  }
}

// `row` counts the rows of all output images, `item` the runs of N channels in one.
template <int N, class T>
TOWERS_HD inline void convolution_item(const WindowShape& s, int row, int item, const T* input,
                                       const T* weights, const T* biases, bool relu, T* output) {
  const int groups = s.output.channels / N, run = item / groups, c = (item - run * groups) * N;
  if (row >= s.batch * s.output.height || run >= runs_in(s.output.width)) return;
  const int image = row / s.output.height, y = row - image * s.output.height;
  Lanes<Wide<T>, N> sums[kRun];
  TOWERS_UNROLL
  for (int p = 0; p < kRun; ++p) sums[p] = load<N>(biases + c);
  for (int ky = 0; ky < s.size; ++ky) {
    const int iy = y * s.stride + ky - s.pad_top;
    if (iy < 0 || iy >= s.input.height) continue;
    for (int kx = 0; kx < s.size; ++kx) {
      RunOfPixels pixels;
      TOWERS_UNROLL
      for (int p = 0; p < kRun; ++p) {
        const int ix = (run * kRun + p) * s.stride + kx - s.pad_left;
        pixels.at[p] = ix < s.input.width ? ix : -1;
      }
      convolve_tap<N>(s, image * s.input.height + iy, pixels, input,
                      weights + weight_index(s, ky, kx, 0) + c, sums);
    }
  }
  TOWERS_UNROLL
  for (int p = 0; p < kRun; ++p) {
    const int x = run * kRun + p;
    if (x >= s.output.width) continue;
    TOWERS_UNROLL
    for (int k = 0; k < N; ++k)
      if (relu) sums[p].at[k] = relu_of(sums[p].at[k]);
    store(output + pixel_index(s.output, row, x) + c, sums[p]);
  }
}

// The output that reads padded input position `at` through tap k, or -1.
TOWERS_HD inline int output_reading(int at, int k, int stride, int outputs) {
  const int from = at - k;
  return from >= 0 && from % stride == 0 && from / stride < outputs ? from / stride : -1;
}

// `row` counts the rows of all input images, `item` the runs of single channels in one; outputs are
// summed N at a time.
template <int N, class T>
TOWERS_HD inline void convolution_input_gradient_item(const WindowShape& s, int row, int item,
                                                      const T* d_output, const T* weights,
                                                      T* d_input) {
  const int run = item / s.input.channels, i = item - run * s.input.channels;
  if (row >= s.batch * s.input.height || run >= runs_in(s.input.width)) return;
  const int image = row / s.input.height, y = row - image * s.input.height;
  Wide<T> sums[kRun] = {};
  for (int ky = 0; ky < s.size; ++ky) {
    const int oy = output_reading(y + s.pad_top, ky, s.stride, s.output.height);
    if (oy < 0) continue;
    for (int kx = 0; kx < s.size; ++kx) {
      const T* const weight = weights + weight_index(s, ky, kx, i);
      TOWERS_UNROLL
      for (int p = 0; p < kRun; ++p) {
        const int ox = output_reading(run * kRun + p + s.pad_left, kx, s.stride, s.output.width);
        if (ox < 0) continue;
        const T* const d = d_output + pixel_index(s.output, image * s.output.height + oy, ox);
        for (int o = 0; o < s.output.channels; o += N) {
          const Lanes<Wide<T>, N> w = load<N>(weight + o), gradient = load<N>(d + o);
          TOWERS_UNROLL
          for (int k = 0; k < N; ++k) sums[p] += w.at[k] * gradient.at[k];
        }
      }
    }
  }
  TOWERS_UNROLL
  for (int p = 0; p < kRun; ++p) {
    const int x = run * kRun + p;
    if (x < s.input.width)
      d_input[pixel_index(s.input, row, x) + static_cast<std::size_t>(i)] = narrow<T>(sums[p]);
  }
}

// What one row of one output image adds to the gradients of the weights at (ky, kx) from inputs
// i .. i + N - 1 to output o.
template <int N, class T>
TOWERS_HD inline Lanes<Wide<T>, N> weight_gradient_of_row(const WindowShape& s, int row, int ky,
                                                          int kx, int i, int o, const T* input,
                                                          const T* d_output) {
  const int image = row / s.output.height, y = row - image * s.output.height;
  const int iy = y * s.stride + ky - s.pad_top;
  Lanes<Wide<T>, N> sum = filled<N>(Wide<T>{0});
  if (iy < 0 || iy >= s.input.height) return sum;
  for (int x = 0; x < s.output.width; ++x) {
    const int ix = x * s.stride + kx - s.pad_left;
    if (ix < 0 || ix >= s.input.width) continue;
    const Lanes<Wide<T>, N> value =
        load<N>(input + pixel_index(s.input, image * s.input.height + iy, ix) + i);
    const Wide<T> d = widen(d_output[pixel_index(s.output, row, x) + static_cast<std::size_t>(o)]);
    TOWERS_UNROLL
    for (int k = 0; k < N; ++k) sum.at[k] += value.at[k] * d;
  }
  return sum;
}

}  // namespace towers::cuda
