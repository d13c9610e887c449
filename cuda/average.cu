#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/pieces.h"

namespace towers::cuda {
namespace {

template <class W, bool kFirst>
__global__ void __launch_bounds__(kPieceThreads)
    accumulate_kernel(const Piece* pieces, std::int64_t step, int tower, const W* gradient, W* sum,
                      const LossScale* scale, std::uint64_t* trouble) {
  const Piece piece = pieces[blockIdx.x];
  gradient += piece.begin;
  sum += piece.begin;
  Lanes<W, 4> added[kPieceTurns], total[kPieceTurns];
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
  // A scale that is too large is no trouble (cuda/loss_scale_math.h).
  if (largest > kLargestFinite && (scale == nullptr || scale->scale <= kLeastLossScale))
    record(trouble_key(step, Trouble::tower_gradient, static_cast<int>(piece.variable), tower),
           trouble);
}

template <class W>
__global__ void __launch_bounds__(kPieceThreads)
    sum_towers_kernel(const Piece* pieces, const W* const* towers, int count, W* sum) {
  const Piece piece = pieces[blockIdx.x];
  sum += piece.begin;
  TOWERS_UNROLL
  for (int turn = 0; turn < kPieceTurns; ++turn) {
    const std::uint32_t at = four_at(turn);
    if (!has_four(piece, at)) continue;
    Lanes<W, 4> total = load<4>(towers[0] + piece.begin + at);
    for (int t = 1; t < count; ++t) {
      const Lanes<W, 4> added = load<4>(towers[t] + piece.begin + at);
      TOWERS_UNROLL
      for (int i = 0; i < 4; ++i) total.at[i] += added.at[i];
    }
    store(sum + at, total);
  }
  if (const std::uint32_t at = single_at(piece); at < piece.size) {
    W total = towers[0][piece.begin + at];
    for (int t = 1; t < count; ++t) total += towers[t][piece.begin + at];
    sum[at] = total;
  }
}

}  // namespace

template <class W>
void sum_towers(Stream& stream, const Piece* pieces, int piece_count, const W* const* towers,
                int count, W* sum) {
  launch(sum_towers_kernel<W>, dim3(static_cast<unsigned>(piece_count)), dim3(kPieceThreads),
         stream, pieces, towers, count, sum);
}

template <class W>
void accumulate_gradients(Stream& stream, const Piece* pieces, int piece_count, bool first,
                          std::int64_t step, int tower, const W* tower_gradient, W* sum,
                          const LossScale* scale, std::uint64_t* trouble) {
  launch(first ? accumulate_kernel<W, true> : accumulate_kernel<W, false>,
         dim3(static_cast<unsigned>(piece_count)), dim3(kPieceThreads), stream, pieces, step, tower,
         tower_gradient, sum, scale, trouble);
}

#define TOWERS_INSTANTIATE(W)                                                             \
  template void sum_towers(Stream&, const Piece*, int, const W* const*, int, W*);         \
  template void accumulate_gradients(Stream&, const Piece*, int, bool, std::int64_t, int, \
                                     const W*, W*, const LossScale*, std::uint64_t*);
TOWERS_FOR_EACH_WIDE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
