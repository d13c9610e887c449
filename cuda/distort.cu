#include "cuda/distort_math.h"
#include "cuda/kernels.h"
#include "cuda/lanes.h"
#include "cuda/launch.h"
#include "cuda/storage.h"

namespace towers::cuda {
namespace {

// A block's part: the image and label of one record.
template <class T>
__device__ void write_example(const std::uint8_t* record, const Distortion& distortion, T* image,
                              std::int32_t* label) {
  __shared__ std::uint64_t sums[kDistortThreads];
  __shared__ Affine affine;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) *label = record[0];
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

template <class T>
__device__ T* image_of_block(T* images) {
  return images + std::size_t{blockIdx.x} * (3 * kCropPixels);
}

template <class T>
__global__ void __launch_bounds__(kDistortThreads)
    training_batch_kernel(TrainingSet set, std::uint64_t first_position, T* images,
                          std::int32_t* labels) {
  write_example(record_at(set.records, example_at(set, first_position, blockIdx.x)),
                draw_distortion(set.seed, first_position + blockIdx.x), image_of_block(images),
                labels + blockIdx.x);
}

__global__ void __launch_bounds__(kDistortThreads)
    evaluation_batch_kernel(const std::uint8_t* records, std::uint64_t first, float* images,
                            std::int32_t* labels) {
  write_example(record_at(records, first + blockIdx.x), Distortion{}, image_of_block(images),
                labels + blockIdx.x);
}

}  // namespace

template <class T>
void training_batch(Stream& stream, const TrainingSet& set, std::uint64_t first_position, int batch,
                    T* images, std::int32_t* labels) {
  launch(training_batch_kernel<T>, dim3(static_cast<unsigned>(batch)), dim3(kDistortThreads),
         stream, set, first_position, images, labels);
}

void evaluation_batch(Stream& stream, const std::uint8_t* records, std::uint64_t first, int batch,
                      float* images, std::int32_t* labels) {
  launch(evaluation_batch_kernel, dim3(static_cast<unsigned>(batch)), dim3(kDistortThreads), stream,
         records, first, images, labels);
}

#define TOWERS_INSTANTIATE(T) \
  template void training_batch(Stream&, const TrainingSet&, std::uint64_t, int, T*, std::int32_t*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
