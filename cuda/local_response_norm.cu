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

__global__ void __launch_bounds__(kBlockThreads)
    norm_groups_kernel(NormParameters n, std::size_t pixels, int groups, const float* input,
                       float* output) {
  const std::size_t pixel = pixel_of_thread();
  if (pixel >= pixels) return;
  const std::size_t at = pixel * static_cast<std::size_t>(4 * groups);
  const int group = static_cast<int>(threadIdx.x);
  store(output + at + 4 * group, normalized_group(n, groups, group, input + at));
}

__global__ void __launch_bounds__(kBlockThreads)
    norm_any_kernel(NormParameters n, std::size_t pixels, int channels, const float* input,
                    float* output) {
  const std::size_t pixel = pixel_of_thread();
  if (pixel >= pixels) return;
  const std::size_t at = pixel * static_cast<std::size_t>(channels);
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x))
    output[at + static_cast<std::size_t>(c)] = normalized_at(n, channels, c, input + at);
}

__global__ void __launch_bounds__(kBlockThreads)
    norm_backward_groups_kernel(NormParameters n, std::size_t pixels, int groups,
                                const float* input, const float* d_output, bool relu_input,
                                float* d_input) {
  __shared__ float4 products[kGroups];
  const std::size_t pixel = pixel_of_thread();
  const int group = static_cast<int>(threadIdx.x);
  const std::size_t at = pixel * static_cast<std::size_t>(4 * groups);
  float* const own_products =
      reinterpret_cast<float*>(products) + 4 * static_cast<int>(threadIdx.y) * groups;
  NormHalf half{};
  if (pixel < pixels) {
    half = differentiate_group(n, groups, group, input + at, load<4>(d_output + at + 4 * group));
    store(own_products + 4 * group, half.products);
  }
  __syncthreads();
  if (pixel < pixels)
    store(d_input + at + 4 * group,
          combine_group(n, groups, group, half, own_products, relu_input));
}

__global__ void __launch_bounds__(kBlockThreads)
    norm_backward_any_kernel(NormParameters n, std::size_t pixels, int channels, const float* input,
                             const float* d_output, bool relu_input, float* d_input) {
  const std::size_t pixel = pixel_of_thread();
  if (pixel >= pixels) return;
  const std::size_t at = pixel * static_cast<std::size_t>(channels);
  for (int c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x))
    d_input[at + static_cast<std::size_t>(c)] =
        norm_gradient_at(n, channels, c, input + at, d_output + at, relu_input);
}

// Whether the kernels for groups of four channels apply.
template <class... Pointers>
bool in_groups(const LocalResponseNorm& norm, int channels, const Pointers*... pointers) {
  return norm_fits_groups(norm, channels) && channels <= 4 * kGroups &&
         in_fours(channels, pointers...);
}

}  // namespace

void local_response_norm(Stream& stream, const LocalResponseNorm& norm, std::size_t pixels,
                         int channels, const float* input, float* output) {
  const bool groups = in_groups(norm, channels, input, output);
  const int items = groups ? channels / 4 : channels;
  const Grid grid = whole_row_grid(pixels, to_size(items));
  launch(groups ? norm_groups_kernel : norm_any_kernel, grid.blocks, grid.threads, stream,
         NormParameters(norm), pixels, items, input, output);
}

void local_response_norm_backward(Stream& stream, const LocalResponseNorm& norm, std::size_t pixels,
                                  int channels, const float* input, const float* d_output,
                                  bool relu_input, float* d_input) {
  const bool groups = in_groups(norm, channels, input, d_output, d_input);
  const int items = groups ? channels / 4 : channels;
  const Grid grid = whole_row_grid(pixels, to_size(items));
  launch(groups ? norm_backward_groups_kernel : norm_backward_any_kernel, grid.blocks, grid.threads,
         stream, NormParameters(norm), pixels, items, input, d_output, relu_input, d_input);
}

}  // namespace towers::cuda
