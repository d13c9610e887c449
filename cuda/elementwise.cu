#include "cuda/elementwise_math.h"
#include "cuda/grid.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"

namespace towers::cuda {
namespace {

template <class T, int N>
__global__ void __launch_bounds__(kBlockThreads)
    add_biases_kernel(std::size_t rows, int channels, const T* biases, bool relu, T* values) {
  const std::size_t row = std::size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  T* const pixel = values + row * static_cast<std::size_t>(channels);
  for (int c = static_cast<int>(threadIdx.x) * N; c < channels;
       c += static_cast<int>(blockDim.x) * N)
    add_biases_item<N>(c, biases, relu, pixel + c);
}

// Four values a thread; the last thread takes what is left over.
template <class Output, class T>
__global__ void __launch_bounds__(kBlockThreads)
    relu_backward_kernel(std::size_t count, const Output* output, T* d) {
  const std::size_t at = 4 * (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (at + 4 <= count)
    relu_backward_item<4>(output + at, d + at);
  else
    for (std::size_t i = at; i < count; ++i) relu_backward_item<1>(output + i, d + i);
}

template <class Output, class T>
__global__ void __launch_bounds__(kBlockThreads)
    relu_backward_unaligned_kernel(std::size_t count, const Output* output, T* d) {
  const std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at < count) relu_backward_item<1>(output + at, d + at);
}

// Four values a thread, as above.
template <class From, class To>
__global__ void __launch_bounds__(kBlockThreads)
    convert_kernel(std::size_t count, const From* from, To* to) {
  const std::size_t at = 4 * (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (at + 4 <= count)
    convert_item<4>(from + at, to + at);
  else
    for (std::size_t i = at; i < count; ++i) convert_item<1>(from + i, to + i);
}

}  // namespace

template <class T>
void add_biases(Stream& stream, std::size_t rows, int channels, const T* biases, bool relu,
                T* values) {
  const bool fours = in_fours(channels, biases, values);
  const Grid grid = whole_row_grid(rows, to_size(fours ? channels / 4 : channels));
  launch(fours ? add_biases_kernel<T, 4> : add_biases_kernel<T, 1>, grid.blocks, grid.threads,
         stream, rows, channels, biases, relu, values);
}

template <class Output, class T>
void relu_backward(Stream& stream, std::size_t count, const Output* output, T* d) {
  const bool fours = in_fours(4, output, d);
  const Grid grid = flat_grid(fours ? divide_up(count, 4) : count);
  launch(fours ? relu_backward_kernel<Output, T> : relu_backward_unaligned_kernel<Output, T>,
         grid.blocks, grid.threads, stream, count, output, d);
}

template <class From, class To>
void convert(Stream& stream, std::size_t count, const From* from, To* to) {
  const Grid grid = flat_grid(divide_up(count, 4));
  launch(convert_kernel<From, To>, grid.blocks, grid.threads, stream, count, from, to);
}

#define TOWERS_INSTANTIATE(T)                                              \
  template void add_biases(Stream&, std::size_t, int, const T*, bool, T*); \
  template void relu_backward(Stream&, std::size_t, const T*, T*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE
// From and to float, and between a layer's wide output and its narrow gradient.
#define TOWERS_INSTANTIATE(T)                                    \
  template void convert(Stream&, std::size_t, const float*, T*); \
  template void convert(Stream&, std::size_t, const T*, float*);
TOWERS_INSTANTIATE(double)
TOWERS_INSTANTIATE(__half)
TOWERS_INSTANTIATE(__nv_bfloat16)
#undef TOWERS_INSTANTIATE
template void relu_backward(Stream&, std::size_t, const float*, __half*);
template void relu_backward(Stream&, std::size_t, const float*, __nv_bfloat16*);

}  // namespace towers::cuda
