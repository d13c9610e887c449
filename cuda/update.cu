#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/pieces.h"

namespace towers::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = static_cast<int>(kPieceThreads) / kWarp;

// The sum over the block's threads, known to thread 0: halves of each warp are added, then the
// warps in order.
__device__ float block_sum(float value) {
  __shared__ float warp_sums[kWarps];
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_down_sync(0xffffffffu, value, static_cast<unsigned>(offset));
  if (threadIdx.x % kWarp == 0) warp_sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0;
  if (threadIdx.x == 0)
    for (int warp = 0; warp < kWarps; ++warp) sum += warp_sums[warp];
  return sum;
}

// What a turn reads and writes, four values of each.
struct Four {
  Lanes<float, 4> gradient, variable, average, own;
};

// kOwn: the own tower's gradient is another buffer than the gradient.
template <bool kOwn>
__global__ void __launch_bounds__(kPieceThreads) update_kernel(UpdateArguments a) {
  const Piece piece = a.pieces[blockIdx.x];
  const std::size_t begin = piece.begin;
  // Everything is under way before the first value is needed.
  const std::uint64_t trouble = *static_cast<volatile std::uint64_t*>(a.trouble);
  Four fours[kPieceTurns];
  UpdateSeen seen;
  TOWERS_UNROLL
  for (int turn = 0; turn < kPieceTurns; ++turn) {
    const std::uint32_t at = four_at(turn);
    if (!has_four(piece, at)) continue;
    fours[turn].gradient = load<4>(a.gradient + begin + at);
    fours[turn].variable = load<4>(a.variables + begin + at);
    fours[turn].average = load<4>(a.averages + begin + at);
    fours[turn].own = kOwn ? load<4>(a.own_gradient + begin + at) : fours[turn].gradient;
  }
  if (is_stopped(trouble, a.step)) return;

  TOWERS_UNROLL
  for (int turn = 0; turn < kPieceTurns; ++turn) {
    const std::uint32_t at = four_at(turn);
    if (!has_four(piece, at)) continue;
    Four& four = fours[turn];
    TOWERS_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (a.own_gradient != nullptr) note(four.own.at[i], seen.tower_gradient);
      const Updated updated = update_value(a, piece.weight_decay, four.gradient.at[i],
                                           four.variable.at[i], four.average.at[i], seen);
      four.gradient.at[i] = updated.mean;
      four.variable.at[i] = updated.variable;
      four.average.at[i] = updated.average;
    }
    store(a.mean + begin + at, four.gradient);
    store(a.variables + begin + at, four.variable);
    store(a.averages + begin + at, four.average);
  }
  if (const std::uint32_t at = single_at(piece); at < piece.size) {
    const std::size_t i = begin + at;
    if (a.own_gradient != nullptr) note(a.own_gradient[i], seen.tower_gradient);
    const Updated updated =
        update_value(a, piece.weight_decay, a.gradient[i], a.variables[i], a.averages[i], seen);
    a.mean[i] = updated.mean;
    a.variables[i] = updated.variable;
    a.averages[i] = updated.average;
  }
  record(trouble_of(a, static_cast<int>(piece.variable), seen), a.trouble);

  const float squares = block_sum(seen.squares);
  if (threadIdx.x == 0) {
    a.squares[blockIdx.x] = squares;
    if (piece.weight_decay != 0 && !is_finite(squares))  // so is every tower's total loss
      record(trouble_key(a.step, Trouble::loss, 0, a.first_tower), a.trouble);
  }
  if (blockIdx.x == 0)
    for (int t = static_cast<int>(threadIdx.x); t < a.tower_count;
         t += static_cast<int>(kPieceThreads))
      if (!is_finite(a.cross_entropies[t]))
        record(trouble_key(a.step, Trouble::loss, 0, a.first_tower + t * a.tower_stride),
               a.trouble);
}

}  // namespace

void update(Stream& stream, const UpdateArguments& arguments) {
  const bool own =
      arguments.own_gradient != nullptr && arguments.own_gradient != arguments.gradient;
  launch(own ? update_kernel<true> : update_kernel<false>,
         dim3(static_cast<unsigned>(arguments.piece_count)), dim3(kPieceThreads), stream,
         arguments);
}

}  // namespace towers::cuda
