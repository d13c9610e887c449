#include "cuda/elementwise_math.h"
#include "cuda/grid.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"

namespace towers::cuda {
namespace {

template <int N>
__global__ void __launch_bounds__(kBlockThreads)
    add_biases_kernel(std::size_t rows, int channels, const float* biases, bool relu,
                      float* values) {
  const std::size_t row = std::size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float* const pixel = values + row * static_cast<std::size_t>(channels);
  for (int c = static_cast<int>(threadIdx.x) * N; c < channels;
       c += static_cast<int>(blockDim.x) * N)
    add_biases_item<N>(c, biases, relu, pixel + c);
}

// Four values a thread; the last thread takes what is left over.
__global__ void __launch_bounds__(kBlockThreads)
    relu_backward_kernel(std::size_t count, const float* output, float* d) {
  const std::size_t at = 4 * (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (at + 4 <= count)
    relu_backward_item<4>(output + at, d + at);
  else
    for (std::size_t i = at; i < count; ++i) relu_backward_item<1>(output + i, d + i);
}

__global__ void __launch_bounds__(kBlockThreads)
    relu_backward_unaligned_kernel(std::size_t count, const float* output, float* d) {
  const std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at < count) relu_backward_item<1>(output + at, d + at);
}

}  // namespace

void add_biases(Stream& stream, std::size_t rows, int channels, const float* biases, bool relu,
                float* values) {
  const bool fours = in_fours(channels, biases, values);
  const Grid grid = whole_row_grid(rows, to_size(fours ? channels / 4 : channels));
  launch(fours ? add_biases_kernel<4> : add_biases_kernel<1>, grid.blocks, grid.threads, stream,
         rows, channels, biases, relu, values);
}

void relu_backward(Stream& stream, std::size_t count, const float* output, float* d) {
  const bool fours = in_fours(4, output, d);
  const Grid grid = flat_grid(fours ? divide_up(count, 4) : count);
  launch(fours ? relu_backward_kernel : relu_backward_unaligned_kernel, grid.blocks, grid.threads,
         stream, count, output, d);
}

}  // namespace towers::cuda
