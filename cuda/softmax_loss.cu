#include "cuda/grid.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/softmax_math.h"

namespace towers::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kThreads = static_cast<int>(kBlockThreads);
constexpr unsigned kAllLanes = 0xffffffffu;

// Mean of losses[0 .. batch - 1], by one block: each thread sums every 256th, then halves are
// added.
template <class W>
__device__ void write_mean(int batch, const W* losses, float* mean) {
  __shared__ double sums[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (int i = thread; i < batch; i += kThreads) sum += static_cast<double>(losses[i]);
  sums[thread] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) sums[thread] += sums[thread + half];
  }
  if (thread == 0) *mean = static_cast<float>(sums[0] / batch);
}

// `lanes` threads an image; share: of an image in the loss, without the scale. A grid of one block
// writes the mean too.
template <class T>
__global__ void __launch_bounds__(kThreads)
    softmax_kernel(int batch, int classes, int lanes, const Wide<T>* logits,
                   const std::int32_t* labels, double share, const LossScale* scale, T* d_logits,
                   Wide<T>* losses, float* mean) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int image = thread / lanes, lane = thread % lanes;
  // A thread beyond the last image goes along with that, so that no warp lacks a lane.
  const int here = image < batch ? image : batch - 1;
  const Wide<T>* const row =
      logits + static_cast<std::size_t>(here) * static_cast<std::size_t>(classes);
  Wide<T> largest = largest_logit(row, classes, lane, lanes);
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    largest = larger(largest, __shfl_xor_sync(kAllLanes, largest, offset));
  double sum = sum_of_exponentials(row, classes, lane, lanes, largest);
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, offset);
  if (image < batch) {
    if (lane == 0) losses[here] = cross_entropy(row, labels[here], largest, sum);
    if (d_logits != nullptr) {
      if (scale != nullptr) share *= static_cast<double>(scale->scale);  // a power of two
      softmax_gradient(row, classes, lane, lanes, labels[here], largest, sum, share,
                       d_logits + (row - logits));
    }
  }
  if (gridDim.x == 1) {
    __syncthreads();
    write_mean(batch, losses, mean);
  }
}

template <class W>
__global__ void __launch_bounds__(kThreads) mean_kernel(int batch, const W* losses, float* mean) {
  write_mean(batch, losses, mean);
}

}  // namespace

template <class T>
void softmax_loss(Stream& stream, int batch, int classes, const Wide<T>* logits,
                  const std::int32_t* labels, const LossScale* scale, T* d_logits, Wide<T>* losses,
                  float* mean) {
  // One block as far as it goes, since a second kernel would take longer than the first; beyond it
  // about four classes a thread.
  int lanes = 1;
  if (batch <= kThreads)
    while (lanes < kWarp && 2 * lanes <= classes && 2 * lanes * batch <= kThreads) lanes *= 2;
  else
    while (lanes < kWarp && 4 * lanes < classes) lanes *= 2;
  const Grid grid = flat_grid(to_size(batch) * to_size(lanes));
  launch(softmax_kernel<T>, grid.blocks, grid.threads, stream, batch, classes, lanes, logits,
         labels, 1.0 / batch, scale, d_logits, losses, mean);
  if (grid.blocks.x > 1)
    launch(mean_kernel<Wide<T>>, dim3(1), dim3(kThreads), stream, batch, losses, mean);
}

#define TOWERS_INSTANTIATE(T)                                                        \
  template void softmax_loss(Stream&, int, int, const Wide<T>*, const std::int32_t*, \
                             const LossScale*, T*, Wide<T>*, float*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
