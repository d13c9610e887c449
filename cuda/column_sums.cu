#include <algorithm>

#include "cuda/grid.h"
#include "cuda/kernels.h"
#include "cuda/lanes.h"
#include "cuda/launch.h"

namespace towers::cuda {
namespace {

constexpr std::size_t kChunkRows = 256;  // of a first-stage block, more where there'd be too many
constexpr std::size_t kMostChunks = 512;

constexpr std::size_t chunk_rows(std::size_t rows) {
  return std::max(kChunkRows, divide_up(rows, kMostChunks));
}

// out[chunk][channel]: sums over the rows of each chunk. A block takes one chunk (blockIdx.x) and
// blockDim.x groups of N channels; row by row each of its blockDim.y teams (a power of two) takes
// the next one, and in the end halves of the teams are added.
template <class T, int N>
__global__ void __launch_bounds__(kBlockThreads)
    column_sums_kernel(std::size_t rows, std::size_t rows_of_chunk, int channels, const T* values,
                       Wide<T>* out) {
  __shared__ Lanes<Wide<T>, N> team_sums[kBlockThreads];
  const std::size_t chunk = blockIdx.x;
  const std::size_t end = (chunk + 1) * rows_of_chunk < rows ? (chunk + 1) * rows_of_chunk : rows;
  const int c = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
  const bool inside = c < channels;
  Lanes<Wide<T>, N> sum = filled<N>(Wide<T>{0});
  if (inside) {
    const std::size_t width = static_cast<std::size_t>(channels), turn = blockDim.y;
    std::size_t row = chunk * rows_of_chunk + threadIdx.y;
    for (; row + 3 * turn < end; row += 4 * turn) {  // four loads are under way at a time
      Lanes<Wide<T>, N> added[4];
      TOWERS_UNROLL
      for (int k = 0; k < 4; ++k)
        added[k] = load<N>(values + (row + static_cast<std::size_t>(k) * turn) * width + c);
      TOWERS_UNROLL
      for (int k = 0; k < 4; ++k) add(sum, added[k]);
    }
    for (; row < end; row += turn) add(sum, load<N>(values + row * width + c));
  }
  const unsigned own = threadIdx.y * blockDim.x + threadIdx.x;
  team_sums[own] = sum;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half)
      for (int i = 0; i < N; ++i) team_sums[own].at[i] += team_sums[own + half * blockDim.x].at[i];
  }
  if (threadIdx.y == 0 && inside)
    store(out + chunk * static_cast<std::size_t>(channels) + c, team_sums[own]);
}

// One stage: chunks x channels sums, by blocks `most` groups of channels wide.
template <class T>
void sum_chunks(Stream& stream, std::size_t rows, std::size_t rows_of_chunk, int channels,
                std::size_t most, const T* values, Wide<T>* out) {
  const bool fours = in_fours(channels, values, out);
  const std::size_t groups = to_size(fours ? channels / 4 : channels);
  const std::size_t x = std::min(groups, most);
  std::size_t y = 1;
  while (2 * y * x <= kBlockThreads) y *= 2;
  launch(fours ? column_sums_kernel<T, 4> : column_sums_kernel<T, 1>,
         dim3(to_unsigned(divide_up(rows, rows_of_chunk)), to_unsigned(divide_up(groups, x))),
         dim3(to_unsigned(x), to_unsigned(y)), stream, rows, rows_of_chunk, channels, values, out);
}

}  // namespace

std::size_t column_sums_scratch(std::size_t rows, int channels) {
  return divide_up(rows, chunk_rows(rows)) * to_size(channels);
}

template <class T>
void column_sums(Stream& stream, std::size_t rows, int channels, const T* values, Wide<T>* out,
                 Wide<T>* scratch) {
  const std::size_t rows_of_chunk = chunk_rows(rows);
  const std::size_t chunks = divide_up(rows, rows_of_chunk);
  // Wide blocks read long lines; the second stage has few values and takes them all at once.
  constexpr std::size_t kWide = 32, kNarrow = 4;
  if (chunks <= 1) return sum_chunks(stream, rows, rows_of_chunk, channels, kNarrow, values, out);
  sum_chunks(stream, rows, rows_of_chunk, channels, kWide, values, scratch);
  sum_chunks(stream, chunks, chunks, channels, kNarrow, scratch, out);
}

#define TOWERS_INSTANTIATE(T) \
  template void column_sums(Stream&, std::size_t, int, const T*, Wide<T>*, Wide<T>*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
