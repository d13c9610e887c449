#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/pieces.h"

namespace towers::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = static_cast<int>(kPieceThreads) / kWarp;

// The sum over the block's threads, known to thread 0: halves of each warp are added, then the
// warps in order.
template <class W>
__device__ W block_sum(W value) {
  __shared__ W warp_sums[kWarps];
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_down_sync(0xffffffffu, value, static_cast<unsigned>(offset));
  if (threadIdx.x % kWarp == 0) warp_sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  W sum = 0;
  if (threadIdx.x == 0)
    for (int warp = 0; warp < kWarps; ++warp) sum += warp_sums[warp];
  return sum;
}

// What a turn reads and writes, four values of each.
template <class W>
struct Four {
  Lanes<W, 4> gradient, variable, average, own;
};

// Turns whose values are all under way before the first one is needed, as far as registers reach.
template <class W>
constexpr int kTurnsAhead = sizeof(W) <= sizeof(float) ? kPieceTurns : 1;

// kOwn: the own tower's gradient is another buffer than the gradient.
template <class T, bool kOwn>
__global__ void __launch_bounds__(kPieceThreads) update_kernel(UpdateArguments<T> a) {
  using W = Wide<T>;
  const Piece piece = a.pieces[blockIdx.x];
  const std::size_t begin = piece.begin;
  const std::uint64_t trouble = *static_cast<volatile std::uint64_t*>(a.trouble);
  W unscale = a.gradient_scale;
  bool skips = false;
  if constexpr (kScaled<T>) {
    const LossScale scale = *a.loss_scale;
    unscale /= scale.scale;
    skips = scale.skips_step();
  }
  UpdateSeen<W> seen;
  TOWERS_UNROLL
  for (int first = 0; first < kPieceTurns; first += kTurnsAhead<W>) {
    Four<W> fours[kTurnsAhead<W>];
    TOWERS_UNROLL
    for (int turn = 0; turn < kTurnsAhead<W>; ++turn) {
      const std::uint32_t at = four_at(first + turn);
      if (!has_four(piece, at)) continue;
      fours[turn].gradient = load<4>(a.gradient + begin + at);
      fours[turn].variable = load<4>(a.variables + begin + at);
      fours[turn].average = load<4>(a.averages + begin + at);
      fours[turn].own = kOwn ? load<4>(a.own_gradient + begin + at) : fours[turn].gradient;
    }
    if (is_stopped(trouble, a.step)) return;

    TOWERS_UNROLL
    for (int turn = 0; turn < kTurnsAhead<W>; ++turn) {
      const std::uint32_t at = four_at(first + turn);
      if (!has_four(piece, at)) continue;
      Four<W>& four = fours[turn];
      TOWERS_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (skips) {
          look_at(four.variable.at[i], seen);
          four.gradient.at[i] =
              mean_gradient(unscale, piece.weight_decay, four.gradient.at[i], four.variable.at[i]);
          continue;
        }
        if (a.own_gradient != nullptr) note(four.own.at[i], seen.tower_gradient);
        const Updated<W> updated = update_value(a, unscale, piece.weight_decay, four.gradient.at[i],
                                                four.variable.at[i], four.average.at[i], seen);
        four.gradient.at[i] = updated.mean;
        four.variable.at[i] = updated.variable;
        four.average.at[i] = updated.average;
      }
      store(a.mean + begin + at, four.gradient);
      if (skips) continue;
      store(a.variables + begin + at, four.variable);
      store(a.averages + begin + at, four.average);
      if constexpr (kNarrow<T>) store(a.working + begin + at, four.variable);
    }
  }
  if (const std::uint32_t at = single_at(piece); at < piece.size) {
    const std::size_t i = begin + at;
    if (skips) {
      look_at(a.variables[i], seen);
      a.mean[i] = mean_gradient(unscale, piece.weight_decay, a.gradient[i], a.variables[i]);
    } else {
      if (a.own_gradient != nullptr) note(a.own_gradient[i], seen.tower_gradient);
      const Updated<W> updated = update_value(a, unscale, piece.weight_decay, a.gradient[i],
                                              a.variables[i], a.averages[i], seen);
      a.mean[i] = updated.mean;
      a.variables[i] = updated.variable;
      a.averages[i] = updated.average;
      if constexpr (kNarrow<T>) a.working[i] = narrow<T>(updated.variable);
    }
  }
  record(trouble_of(a, static_cast<int>(piece.variable), seen), a.trouble);

  const W squares = block_sum(seen.squares);
  if (threadIdx.x == 0) {
    a.squares[blockIdx.x] = static_cast<float>(squares);
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

// Tells `scale` of a value that is not finite.
__global__ void __launch_bounds__(kPieceThreads)
    overflow_kernel(const Piece* pieces, const float* gradient, LossScale* scale) {
  const Piece piece = pieces[blockIdx.x];
  gradient += piece.begin;
  std::uint32_t largest = 0;
  TOWERS_UNROLL
  for (int turn = 0; turn < kPieceTurns; ++turn) {
    const std::uint32_t at = four_at(turn);
    if (!has_four(piece, at)) continue;
    const Lanes<float, 4> four = load<4>(gradient + at);
    TOWERS_UNROLL
    for (int i = 0; i < 4; ++i) note(four.at[i], largest);
  }
  if (const std::uint32_t at = single_at(piece); at < piece.size) note(gradient[at], largest);
  if (largest > kLargestFinite) atomicExch(&scale->overflow, 1);
}

__global__ void next_scale_kernel(LossScale* scale) {
  *scale = next_loss_scale(*scale);
}

template <class T>
auto update_kernel_for(const UpdateArguments<T>& a) {
  const bool own = a.own_gradient != nullptr && a.own_gradient != a.gradient;
  return own ? update_kernel<T, true> : update_kernel<T, false>;
}

}  // namespace

template <class T>
void update(Stream& stream, const UpdateArguments<T>& a) {
  const dim3 blocks(static_cast<unsigned>(a.piece_count)), threads(kPieceThreads);
  if constexpr (kScaled<T>)
    launch(overflow_kernel, blocks, threads, stream, a.pieces, a.gradient, a.loss_scale);
  launch(update_kernel_for(a), blocks, threads, stream, a);
  if constexpr (kScaled<T>) launch(next_scale_kernel, dim3(1), dim3(1), stream, a.loss_scale);
}

template <class T>
bool set_update(Graph& graph, const UpdateArguments<T>& a) {
  return graph.set_arguments(update_kernel_for(a), a);
}

#define TOWERS_INSTANTIATE(T)                               \
  template void update(Stream&, const UpdateArguments<T>&); \
  template bool set_update(Graph&, const UpdateArguments<T>&);
TOWERS_FOR_EACH_STORAGE(TOWERS_INSTANTIATE)
#undef TOWERS_INSTANTIATE

}  // namespace towers::cuda
