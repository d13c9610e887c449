#include <stdexcept>

#include "cuda/grid.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/max_pool_math.h"

namespace towers::cuda {
namespace {

template <class T, int N, int kSize>
__global__ void __launch_bounds__(kBlockThreads)
    max_pool_kernel(WindowShape shape, bool relu_input, const T* input, T* output,
                    std::uint8_t* winners) {
  max_pool_item<N, kSize>(shape, static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y),
                          static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x), relu_input,
                          input, output, winners);
}

template <class T, int N, int kSize, int kStride>
__global__ void __launch_bounds__(kBlockThreads)
    max_pool_backward_kernel(WindowShape shape, const T* d_output, const std::uint8_t* winners,
                             T* d_input) {
  max_pool_backward_item<N, kSize, kStride>(
      shape, static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y),
      static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x), d_output, winners, d_input);
}

Grid pool_grid(const WindowShape& shape, const Extent& extent, int lanes) {
  if (shape.size > kLargestPoolSize)
    throw std::invalid_argument("max pooling over too large a window");
  return row_grid(to_size(shape.batch) * to_size(extent.height),
                  to_size(extent.width) * to_size(extent.channels / lanes));
}

}  // namespace

template <class T>
void max_pool(Stream& stream, const WindowShape& shape, const T* input, T* output,
              std::uint8_t* winners, bool relu_input) {
  const bool fours = in_fours(shape.input.channels, input, output, winners);
  const Grid grid = pool_grid(shape, shape.output, fours ? 4 : 1);
  const auto kernel = !fours            ? max_pool_kernel<T, 1, 0>
                      : shape.size == 3 ? max_pool_kernel<T, 4, 3>
                                        : max_pool_kernel<T, 4, 0>;
  launch(kernel, grid.blocks, grid.threads, stream, shape, relu_input, input, output, winners);
}

template <class T>
void max_pool_backward(Stream& stream, const WindowShape& shape, const T* d_output,
                       const std::uint8_t* winners, T* d_input) {
  const bool fours = in_fours(shape.input.channels, d_output, winners, d_input);
  const Grid grid = pool_grid(shape, shape.input, fours ? 4 : 1);
  const auto kernel = !fours                                 ? max_pool_backward_kernel<T, 1, 0, 0>
                      : shape.size == 3 && shape.stride == 2 ? max_pool_backward_kernel<T, 4, 3, 2>
                                                             : max_pool_backward_kernel<T, 4, 0, 0>;
  launch(kernel, grid.blocks, grid.threads, stream, shape, d_output, winners, d_input);
}

#define TOWERS_INSTANTIATE(T)                                                             \
  template void max_pool(Stream&, const WindowShape&, const T*, T*, std::uint8_t*, bool); \
  template void max_pool_backward(Stream&, const WindowShape&, const T*, const std::uint8_t*, T*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
