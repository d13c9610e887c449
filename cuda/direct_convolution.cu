#include "cuda/direct_convolution_math.h"
#include "cuda/grid.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"

namespace towers::cuda {
namespace {

__device__ int row_of_thread() {
  return static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
}
__device__ int item_of_thread() {
  return static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
}

template <class T, int N>
__global__ void __launch_bounds__(kBlockThreads)
    convolution_kernel(WindowShape shape, const T* input, const T* weights, const T* biases,
                       bool relu, T* output) {
  convolution_item<N>(shape, row_of_thread(), item_of_thread(), input, weights, biases, relu,
                      output);
}

template <class T, int N>
__global__ void __launch_bounds__(kBlockThreads)
    convolution_input_gradient_kernel(WindowShape shape, const T* d_output, const T* weights,
                                      T* d_input) {
  convolution_input_gradient_item<N>(shape, row_of_thread(), item_of_thread(), d_output, weights,
                                     d_input);
}

// A block sums over all rows of all images for one tap, N inputs (blockIdx.x) and kTile outputs
// (blockIdx.y): each team of kTile threads takes every kTeams-th row, then halves of the teams are
// added.
constexpr int kTile = 32;
constexpr int kTeams = static_cast<int>(kBlockThreads) / kTile;

template <class T, int N>
__global__ void __launch_bounds__(kBlockThreads)
    convolution_weight_gradient_kernel(WindowShape s, const T* input, const T* d_output,
                                       Wide<T>* d_weights) {
  __shared__ Lanes<Wide<T>, N> sums[kTeams][kTile];
  const int groups = s.input.channels / N;
  const int tap = static_cast<int>(blockIdx.x) / groups;
  const int i = (static_cast<int>(blockIdx.x) - tap * groups) * N;
  const int ky = tap / s.size, kx = tap - ky * s.size;
  const int lane = static_cast<int>(threadIdx.x), team = static_cast<int>(threadIdx.y);
  const int o = static_cast<int>(blockIdx.y) * kTile + lane;
  const bool inside = o < s.output.channels;
  Lanes<Wide<T>, N> sum = filled<N>(Wide<T>{0});
  if (inside)
    for (int row = team; row < s.batch * s.output.height; row += kTeams)
      add(sum, weight_gradient_of_row<N>(s, row, ky, kx, i, o, input, d_output));
  sums[team][lane] = sum;
  for (int half = kTeams / 2; half > 0; half /= 2) {
    __syncthreads();
    if (team < half) add(sums[team][lane], sums[team + half][lane]);
  }
  if (team == 0 && inside)
    for (int k = 0; k < N; ++k)
      d_weights[weight_index(s, ky, kx, i + k) + static_cast<std::size_t>(o)] = sums[0][lane].at[k];
}

Grid run_grid(const WindowShape& shape, const Extent& extent, int groups) {
  return row_grid(to_size(shape.batch) * to_size(extent.height),
                  to_size(runs_in(extent.width)) * to_size(groups));
}

}  // namespace

template <class T>
void direct_convolution(Stream& stream, const WindowShape& shape, const T* input, const T* weights,
                        const T* biases, bool relu, T* output) {
  const int channels = shape.output.channels;
  const bool fours = in_fours(channels, weights, biases, output);
  const Grid grid = run_grid(shape, shape.output, fours ? channels / 4 : channels);
  launch(fours ? convolution_kernel<T, 4> : convolution_kernel<T, 1>, grid.blocks, grid.threads,
         stream, shape, input, weights, biases, relu, output);
}

template <class T>
void direct_convolution_input_gradient(Stream& stream, const WindowShape& shape, const T* d_output,
                                       const T* weights, T* d_input) {
  const bool fours = in_fours(shape.output.channels, d_output, weights);
  const Grid grid = run_grid(shape, shape.input, shape.input.channels);
  launch(fours ? convolution_input_gradient_kernel<T, 4> : convolution_input_gradient_kernel<T, 1>,
         grid.blocks, grid.threads, stream, shape, d_output, weights, d_input);
}

template <class T>
void direct_convolution_weight_gradient(Stream& stream, const WindowShape& shape, const T* input,
                                        const T* d_output, Wide<T>* d_weights) {
  const int inputs = shape.input.channels;
  const bool fours = in_fours(inputs, input);
  const std::size_t taps = to_size(shape.size) * to_size(shape.size);
  launch(
      fours ? convolution_weight_gradient_kernel<T, 4> : convolution_weight_gradient_kernel<T, 1>,
      dim3(to_unsigned(taps * to_size(fours ? inputs / 4 : inputs)),
           to_unsigned(divide_up(to_size(shape.output.channels), kTile))),
      dim3(kTile, kTeams), stream, shape, input, d_output, d_weights);
}

#define TOWERS_INSTANTIATE(T)                                                                      \
  template void direct_convolution(Stream&, const WindowShape&, const T*, const T*, const T*,      \
                                   bool, T*);                                                      \
  template void direct_convolution_input_gradient(Stream&, const WindowShape&, const T*, const T*, \
                                                  T*);                                             \
  template void direct_convolution_weight_gradient(Stream&, const WindowShape&, const T*,          \
                                                   const T*, Wide<T>*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
