#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/pieces.h"

namespace towers::cuda {
namespace {

template <bool kFirst>
__global__ void __launch_bounds__(kPieceThreads)
    accumulate_kernel(const Piece* pieces, std::int64_t step, int tower, const float* gradient,
                      float* sum, std::uint64_t* trouble) {
  const Piece piece = pieces[blockIdx.x];
  gradient += piece.begin;
  sum += piece.begin;
  Lanes<float, 4> added[kPieceTurns], total[kPieceTurns];
  TOWERS_UNROLL
  for (int turn = 0; turn < kPieceTurns; ++turn) {
    const std::uint32_t at = four_at(turn);
    if (!has_four(piece, at)) continue;
    added[turn] = load<4>(gradient + at);
    if (!kFirst) total[turn] = load<4>(sum + at);
  }
  std::uint32_t largest = 0;
  TOWERS_UNROLL
  for (int turn = 0; turn < kPieceTurns; ++turn) {
    const std::uint32_t at = four_at(turn);
    if (!has_four(piece, at)) continue;
    TOWERS_UNROLL
    for (int i = 0; i < 4; ++i) {
      note(added[turn].at[i], largest);
      total[turn].at[i] = kFirst ? added[turn].at[i] : total[turn].at[i] + added[turn].at[i];
    }
    store(sum + at, total[turn]);
  }
  if (const std::uint32_t at = single_at(piece); at < piece.size) {
    note(gradient[at], largest);
    sum[at] = kFirst ? gradient[at] : sum[at] + gradient[at];
  }
  if (largest > kLargestFinite)
    record(trouble_key(step, Trouble::tower_gradient, static_cast<int>(piece.variable), tower),
           trouble);
}

__global__ void __launch_bounds__(kPieceThreads)
    sum_towers_kernel(const Piece* pieces, const float* const* towers, int count, float* sum) {
  const Piece piece = pieces[blockIdx.x];
  sum += piece.begin;
  TOWERS_UNROLL
  for (int turn = 0; turn < kPieceTurns; ++turn) {
    const std::uint32_t at = four_at(turn);
    if (!has_four(piece, at)) continue;
    Lanes<float, 4> total = load<4>(towers[0] + piece.begin + at);
    for (int t = 1; t < count; ++t) {
      const Lanes<float, 4> added = load<4>(towers[t] + piece.begin + at);
      TOWERS_UNROLL
      for (int i = 0; i < 4; ++i) total.at[i] += added.at[i];
    }
    store(sum + at, total);
  }
  if (const std::uint32_t at = single_at(piece); at < piece.size) {
    float total = towers[0][piece.begin + at];
    for (int t = 1; t < count; ++t) total += towers[t][piece.begin + at];
    sum[at] = total;
  }
}

}  // namespace

void sum_towers(Stream& stream, const Piece* pieces, int piece_count, const float* const* towers,
                int count, float* sum) {
  launch(sum_towers_kernel, dim3(static_cast<unsigned>(piece_count)), dim3(kPieceThreads), stream,
         pieces, towers, count, sum);
}

void accumulate_gradients(Stream& stream, const Piece* pieces, int piece_count, bool first,
                          std::int64_t step, int tower, const float* tower_gradient, float* sum,
                          std::uint64_t* trouble) {
  launch(first ? accumulate_kernel<true> : accumulate_kernel<false>,
         dim3(static_cast<unsigned>(piece_count)), dim3(kPieceThreads), stream, pieces, step, tower,
         tower_gradient, sum, trouble);
}

}  // namespace towers::cuda
