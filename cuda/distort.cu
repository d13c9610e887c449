#include "cuda/distort_math.h"
#include "cuda/kernels.h"
#include "cuda/lanes.h"
#include "cuda/launch.h"
#include "cuda/storage.h"

namespace towers::cuda {
namespace {

// A block makes the image and label of one example.
template <class T>
__global__ void __launch_bounds__(kDistortThreads)
    training_batch_kernel(TrainingSet set, std::uint64_t first_position, T* images,
                          std::int32_t* labels) {
  __shared__ std::uint64_t sums[kDistortThreads];
  __shared__ Affine affine;
  const int thread = static_cast<int>(threadIdx.x);
  const std::uint8_t* const record =
      record_at(set.records, example_at(set, first_position, blockIdx.x));
  const Distortion distortion = draw_distortion(set.seed, first_position + blockIdx.x);
  T* const image = images + std::size_t{blockIdx.x} * (3 * kCropPixels);
  if (thread == 0) labels[blockIdx.x] = record[0];
  std::uint8_t bytes[kDistortTurns];
  TOWERS_UNROLL
  for (int turn = 0; turn < kDistortTurns; ++turn)
    bytes[turn] = source_byte(record, distortion, turn * kDistortThreads + thread);
  std::uint64_t sum = 0;
  TOWERS_UNROLL
  for (int turn = 0; turn < kDistortTurns; ++turn) sum += sum_word(bytes[turn]);
  sums[thread] = sum;
  // Halves are added, down to one word of each channel: all counts are multiples of three.
  for (int count = kDistortThreads / 2; count >= 3; count /= 2) {
    __syncthreads();
    if (thread < count) sums[thread] += sums[thread + count];
  }
  __syncthreads();
  if (thread == 0)  // alone, for double precision is slow on many GPUs
    affine = standardizing_affine(channel_sums(sums), distortion.contrast);
  __syncthreads();
  TOWERS_UNROLL
  for (int turn = 0; turn < kDistortTurns; ++turn)
    image[turn * kDistortThreads + thread] =
        narrow<T>(Wide<T>{distorted(bytes[turn], affine, thread % 3)});
}

}  // namespace

template <class T>
void training_batch(Stream& stream, const TrainingSet& set, std::uint64_t first_position, int batch,
                    T* images, std::int32_t* labels) {
  launch(training_batch_kernel<T>, dim3(static_cast<unsigned>(batch)), dim3(kDistortThreads),
         stream, set, first_position, images, labels);
}

#define TOWERS_INSTANTIATE(T) \
  template void training_batch(Stream&, const TrainingSet&, std::uint64_t, int, T*, std::int32_t*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
