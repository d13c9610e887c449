#include "cuda/grid.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/local_response_norm_math.h"

namespace towers::cuda {
namespace {

constexpr int kGroups = static_cast<int>(kBlockThreads);  // of a pixel that a block holds whole

__device__ std::size_t pixel_of_thread() {
  return std::size_t{blockIdx.x} * blockDim.y + threadIdx.y;
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    norm_groups_kernel(NormParameters<Wide<T>> n, std::size_t pixels, int groups, const T* input,
                       T* output) {
  const std::size_t pixel = pixel_of_thread();
  if (pixel >= pixels) return;
  const std::size_t at = pixel * static_cast<std::size_t>(4 * groups);
  const int group = static_cast<int>(threadIdx.x);
  store(output + at + 4 * group, normalized_group(n, groups, group, input + at));
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    norm_any_kernel(NormParameters<Wide<T>> n, std::size_t pixels, int channels, const T* input,
                    T* output) {
  const std::size_t pixel = pixel_of_thread();
  if (pixel >= pixels) return;
  const std::size_t at = pixel * static_cast<std::size_t>(channels);
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x))
    output[at + static_cast<std::size_t>(c)] = narrow<T>(normalized_at(n, channels, c, input + at));
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    norm_backward_groups_kernel(NormParameters<Wide<T>> n, std::size_t pixels, int groups,
                                const T* input, const T* d_output, bool relu_input, T* d_input) {
  __shared__ Lanes<Wide<T>, 4> products[kGroups];
  const std::size_t pixel = pixel_of_thread();
  const int group = static_cast<int>(threadIdx.x);
  const std::size_t at = pixel * static_cast<std::size_t>(4 * groups);
  Wide<T>* const own_products =
      reinterpret_cast<Wide<T>*>(products) + 4 * static_cast<int>(threadIdx.y) * groups;
  NormHalf<Wide<T>> half{};
  if (pixel < pixels) {
    half = differentiate_group(n, groups, group, input + at, load<4>(d_output + at + 4 * group));
    store(own_products + 4 * group, half.products);
  }
  __syncthreads();
  if (pixel < pixels)
    store(d_input + at + 4 * group,
          combine_group(n, groups, group, half, own_products, relu_input));
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads)
    norm_backward_any_kernel(NormParameters<Wide<T>> n, std::size_t pixels, int channels,
                             const T* input, const T* d_output, bool relu_input, T* d_input) {
  const std::size_t pixel = pixel_of_thread();
  if (pixel >= pixels) return;
  const std::size_t at = pixel * static_cast<std::size_t>(channels);
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x))
    d_input[at + static_cast<std::size_t>(c)] =
        narrow<T>(norm_gradient_at(n, channels, c, input + at, d_output + at, relu_input));
}

// Whether the kernels for groups of four channels apply.
template <class... Pointers>
bool in_groups(const LocalResponseNorm& norm, int channels, const Pointers*... pointers) {
  return norm_fits_groups(norm, channels) && channels <= 4 * kGroups &&
         in_fours(channels, pointers...);
}

}  // namespace

template <class T>
void local_response_norm(Stream& stream, const LocalResponseNorm& norm, std::size_t pixels,
                         int channels, const T* input, T* output) {
  const bool groups = in_groups(norm, channels, input, output);
  const int items = groups ? channels / 4 : channels;
  const Grid grid = whole_row_grid(pixels, to_size(items));
  launch(groups ? norm_groups_kernel<T> : norm_any_kernel<T>, grid.blocks, grid.threads, stream,
         NormParameters<Wide<T>>(norm), pixels, items, input, output);
}

template <class T>
void local_response_norm_backward(Stream& stream, const LocalResponseNorm& norm, std::size_t pixels,
                                  int channels, const T* input, const T* d_output, bool relu_input,
                                  T* d_input) {
  const bool groups = in_groups(norm, channels, input, d_output, d_input);
  const int items = groups ? channels / 4 : channels;
  const Grid grid = whole_row_grid(pixels, to_size(items));
  launch(groups ? norm_backward_groups_kernel<T> : norm_backward_any_kernel<T>, grid.blocks,
         grid.threads, stream, NormParameters<Wide<T>>(norm), pixels, items, input, d_output,
         relu_input, d_input);
}

#define TOWERS_INSTANTIATE(T)                                                                      \
  template void local_response_norm(Stream&, const LocalResponseNorm&, std::size_t, int, const T*, \
                                    T*);                                                           \
  template void local_response_norm_backward(Stream&, const LocalResponseNorm&, std::size_t, int,  \
                                             const T*, const T*, bool, T*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
