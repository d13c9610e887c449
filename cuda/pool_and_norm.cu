// A max pooling and a local response normalization, one after the other, in one pass. What lies
// between them stays in registers and shared memory.

#include "cuda/grid.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/local_response_norm_math.h"
#include "cuda/max_pool_math.h"

namespace towers::cuda {
namespace {

// The only pool that is compiled in.
constexpr int kSize = 3, kStride = 2;
constexpr int kReach = (kSize + kStride - 1) / kStride;  // rows of windows that an input lies in
constexpr int kGroups = static_cast<int>(kBlockThreads);
constexpr int kBandGroups = 512;  // of kReach rows of the pool's output, held by one block

// The place of pixel `pixel` of all images, group `group` of its channels.
__device__ PoolPlace place_of(const Extent& extent, int pixel, int group) {
  const int row = pixel / extent.width, image = row / extent.height;
  return {image, row - image * extent.height, pixel - row * extent.width, 4 * group};
}
__device__ int pixels_of(const WindowShape& s, const Extent& extent) {
  return s.batch * extent.height * extent.width;
}
__device__ std::size_t index_of(const Extent& extent, const PoolPlace& place) {
  return pool_index(extent, place.image, place.y, place.x, place.c);
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    pool_norm_kernel(WindowShape s, NormParameters<Wide<T>> n, bool relu_input, const T* input,
                     T* pooled, std::uint8_t* winners, T* output) {
  __shared__ Lanes<Wide<T>, 4> values[kGroups];
  const int groups = s.input.channels / 4, group = static_cast<int>(threadIdx.x);
  const int pixel = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  Wide<T>* const own =
      reinterpret_cast<Wide<T>*>(values) + 4 * static_cast<int>(threadIdx.y) * groups;
  const bool inside = pixel < pixels_of(s, s.output);
  const PoolPlace place = place_of(s.output, pixel, group);
  if (inside) {
    const PoolBest<Wide<T>, 4> best = max_pool_at<4, kSize>(s, place, relu_input, input);
    if (pooled != nullptr) store(pooled + index_of(s.output, place), best.value);
    if (winners != nullptr) store(winners + index_of(s.output, place), best.winner);
    store(own + 4 * group, best.value);
  }
  __syncthreads();
  if (inside) store(output + index_of(s.output, place), normalized_group(n, groups, group, own));
}

// A block takes the input rows whose last window is row `band` of the output: it makes the
// gradients of all windows that they lie in, between the two layers, then sums what each won.
template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    pool_norm_backward_kernel(WindowShape s, NormParameters<Wide<T>> n, int bands, const T* pooled,
                              const T* d_output, const std::uint8_t* winners, T* d_input) {
  __shared__ Lanes<Wide<T>, 4> product_groups[kBandGroups], gradient_groups[kBandGroups];
  Wide<T>* const products = reinterpret_cast<Wide<T>*>(product_groups);
  Wide<T>* const gradients = reinterpret_cast<Wide<T>*>(gradient_groups);
  const int groups = s.input.channels / 4, row_groups = s.output.width * groups;
  const int image = static_cast<int>(blockIdx.x) / bands;
  const int band = static_cast<int>(blockIdx.x) - image * bands;
  const int first_row = band + 1 > kReach ? band + 1 - kReach : 0;
  const int end_row = band < s.output.height ? band + 1 : s.output.height;
  const std::size_t first = pool_index(s.output, image, first_row, 0, 0);
  const int count = (end_row - first_row) * row_groups;

  for (int i = static_cast<int>(threadIdx.x); i < count; i += kGroups) {
    const int group = i % groups;
    const std::size_t pixel = first + static_cast<std::size_t>(4 * (i - group));
    const NormHalf<Wide<T>> half = differentiate_group(n, groups, group, pooled + pixel,
                                                       load<4>(d_output + pixel + 4 * group));
    store(products + 4 * i, half.products);
    store(gradients + 4 * i, half.through);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kGroups) {
    const int group = i % groups;
    const NormHalf<Wide<T>> half{
        load<4>(pooled + first + static_cast<std::size_t>(4 * i)), load<4>(gradients + 4 * i), {}};
    store(gradients + 4 * i,
          combine_group(n, groups, group, half, products + 4 * (i - group), false));
  }
  __syncthreads();
  const int top = band * kStride - s.pad_top;
  const int first_y = top > 0 ? top : 0;
  const int end_y = top + kStride < s.input.height ? top + kStride : s.input.height;
  const int input_row_groups = s.input.width * groups;
  for (int i = static_cast<int>(threadIdx.x); i < (end_y - first_y) * input_row_groups;
       i += kGroups) {
    const int row = i / input_row_groups, item = i - row * input_row_groups, x = item / groups;
    const PoolPlace place{image, first_y + row, x, 4 * (item - x * groups)};
    store(
        d_input + index_of(s.input, place),
        sum_of_won<Wide<T>, 4, kSize, kStride>(s, place, winners, [&](int, int wy, int wx, int c) {
          return load<4>(gradients + 4 * ((wy - first_row) * row_groups + wx * groups) + c);
        }));
  }
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    norm_pool_kernel(WindowShape s, NormParameters<Wide<T>> n, const T* input, T* output,
                     std::uint8_t* winners) {
  const int groups = s.input.channels / 4, group = static_cast<int>(threadIdx.x);
  const int pixel = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  if (pixel >= pixels_of(s, s.output)) return;
  const PoolPlace place = place_of(s.output, pixel, group);
  const PoolBest<Wide<T>, 4> best =
      largest_in_window<Wide<T>, 4, kSize>(s, place, [&](int image, int y, int x, int) {
        return normalized_group(n, groups, group, input + pool_index(s.input, image, y, x, 0));
      });
  store(output + index_of(s.output, place), best.value);
  if (winners != nullptr) store(winners + index_of(s.output, place), best.winner);
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    norm_pool_backward_kernel(WindowShape s, NormParameters<Wide<T>> n, const T* input,
                              const T* d_output, const std::uint8_t* winners, bool relu_input,
                              T* d_input) {
  __shared__ Lanes<Wide<T>, 4> products[kGroups];
  const int groups = s.input.channels / 4, group = static_cast<int>(threadIdx.x);
  const int pixel = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  Wide<T>* const own =
      reinterpret_cast<Wide<T>*>(products) + 4 * static_cast<int>(threadIdx.y) * groups;
  const bool inside = pixel < pixels_of(s, s.input);
  const PoolPlace place = place_of(s.input, pixel, group);
  NormHalf<Wide<T>> half{};
  if (inside) {
    half = differentiate_group(
        n, groups, group, input + pool_index(s.input, place.image, place.y, place.x, 0),
        max_pool_gradient_at<4, kSize, kStride>(s, place, d_output, winners));
    store(own + 4 * group, half.products);
  }
  __syncthreads();
  if (inside)
    store(d_input + index_of(s.input, place),
          combine_group(n, groups, group, half, own, relu_input));
}

Grid pixel_grid(const WindowShape& s, const Extent& extent) {
  return whole_row_grid(to_size(s.batch) * to_size(extent.height) * to_size(extent.width),
                        to_size(s.input.channels / 4));
}

}  // namespace

bool pool_and_norm_fit(const WindowShape& s, const LocalResponseNorm& norm) {
  const int groups = s.input.channels / 4;
  return s.size == kSize && s.stride == kStride && norm_fits_groups(norm, s.input.channels) &&
         groups <= kGroups && kReach * s.output.width * groups <= kBandGroups;
}

template <class T>
void pool_then_norm(Stream& stream, const WindowShape& shape, const LocalResponseNorm& norm,
                    const T* input, bool relu_input, T* pooled, std::uint8_t* winners, T* output) {
  const Grid grid = pixel_grid(shape, shape.output);
  launch(pool_norm_kernel<T>, grid.blocks, grid.threads, stream, shape,
         NormParameters<Wide<T>>(norm), relu_input, input, pooled, winners, output);
}

template <class T>
void pool_then_norm_backward(Stream& stream, const WindowShape& shape,
                             const LocalResponseNorm& norm, const T* pooled, const T* d_output,
                             const std::uint8_t* winners, T* d_input) {
  const int bands = (shape.input.height + shape.pad_top + kStride - 1) / kStride;
  launch(pool_norm_backward_kernel<T>, dim3(to_unsigned(to_size(shape.batch) * to_size(bands))),
         dim3(to_unsigned(kBlockThreads)), stream, shape, NormParameters<Wide<T>>(norm), bands,
         pooled, d_output, winners, d_input);
}

template <class T>
void norm_then_pool(Stream& stream, const LocalResponseNorm& norm, const WindowShape& shape,
                    const T* input, T* output, std::uint8_t* winners) {
  const Grid grid = pixel_grid(shape, shape.output);
  launch(norm_pool_kernel<T>, grid.blocks, grid.threads, stream, shape,
         NormParameters<Wide<T>>(norm), input, output, winners);
}

template <class T>
void norm_then_pool_backward(Stream& stream, const LocalResponseNorm& norm,
                             const WindowShape& shape, const T* input, const T* d_output,
                             const std::uint8_t* winners, bool relu_input, T* d_input) {
  const Grid grid = pixel_grid(shape, shape.input);
  launch(norm_pool_backward_kernel<T>, grid.blocks, grid.threads, stream, shape,
         NormParameters<Wide<T>>(norm), input, d_output, winners, relu_input, d_input);
}

#define TOWERS_INSTANTIATE(T)                                                                   \
  template void pool_then_norm(Stream&, const WindowShape&, const LocalResponseNorm&, const T*, \
                               bool, T*, std::uint8_t*, T*);                                    \
  template void pool_then_norm_backward(Stream&, const WindowShape&, const LocalResponseNorm&,  \
                                        const T*, const T*, const std::uint8_t*, T*);           \
  template void norm_then_pool(Stream&, const LocalResponseNorm&, const WindowShape&, const T*, \
                               T*, std::uint8_t*);                                              \
  template void norm_then_pool_backward(Stream&, const LocalResponseNorm&, const WindowShape&,  \
                                        const T*, const T*, const std::uint8_t*, bool, T*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
