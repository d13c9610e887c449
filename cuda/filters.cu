#include "cuda/grid.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/storage.h"

namespace towers::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = static_cast<int>(kBlockThreads) / kTile;

// to[column][row] = from[row][column], by tiles, so that both sides are read and written in whole
// lines.
template <class From, class To>
__global__ void __launch_bounds__(kBlockThreads)
    transpose_kernel(int rows, int columns, const From* from, To* to) {
  __shared__ Wide<From> tile[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) * kTile;
  const int first_column = static_cast<int>(blockIdx.y) * kTile;
  for (int i = y; i < kTile; i += kTileRows)
    if (first_row + i < rows && first_column + x < columns)
      tile[i][x] =
          widen(from[static_cast<std::size_t>(first_row + i) * static_cast<std::size_t>(columns) +
                     static_cast<std::size_t>(first_column + x)]);
  __syncthreads();
  for (int i = y; i < kTile; i += kTileRows)
    if (first_column + i < columns && first_row + x < rows)
      to[static_cast<std::size_t>(first_column + i) * static_cast<std::size_t>(rows) +
         static_cast<std::size_t>(first_row + x)] = narrow<To>(tile[x][i]);
}

template <class From, class To>
void transpose(Stream& stream, int rows, int columns, const From* from, To* to) {
  launch(transpose_kernel<From, To>,
         dim3(to_unsigned(divide_up(to_size(rows), kTile)),
              to_unsigned(divide_up(to_size(columns), kTile))),
         dim3(kTile, kTileRows), stream, rows, columns, from, to);
}

}  // namespace

// HWIO is the matrix [kernel * kernel * inputs][outputs], KRSC its transpose.
template <class T>
void hwio_to_krsc(Stream& stream, int kernel, int inputs, int outputs, const T* hwio, T* krsc) {
  transpose(stream, kernel * kernel * inputs, outputs, hwio, krsc);
}
template <class T>
void krsc_to_hwio(Stream& stream, int kernel, int inputs, int outputs, const T* krsc,
                  Wide<T>* hwio) {
  transpose(stream, outputs, kernel * kernel * inputs, krsc, hwio);
}

#define TOWERS_INSTANTIATE(T)                                       \
  template void hwio_to_krsc(Stream&, int, int, int, const T*, T*); \
  template void krsc_to_hwio(Stream&, int, int, int, const T*, Wide<T>*);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
