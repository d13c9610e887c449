#pragma once
// How a block of 256 threads goes through a Piece: four values a thread and turn, then the rest.

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/lanes.h"
#include "cuda/update_math.h"

namespace towers::cuda {

inline constexpr std::uint32_t kPieceThreads = 256;
inline constexpr int kPieceTurns = static_cast<int>(kPieceSize / (4 * kPieceThreads));
static_assert(kPieceTurns * 4 * kPieceThreads == kPieceSize);

// Offset in the piece of this thread's four values of `turn`, and whether they all lie in it.
__device__ inline std::uint32_t four_at(int turn) {
  return 4 * (static_cast<std::uint32_t>(turn) * kPieceThreads + threadIdx.x);
}
__device__ inline bool has_four(const Piece& piece, std::uint32_t at) {
  return at + 4 <= piece.size;
}

// Offset of this thread's value of the up to three that are left over, or the piece's size.
__device__ inline std::uint32_t single_at(const Piece& piece) {
  const std::uint32_t at = piece.size / 4 * 4 + threadIdx.x;
  return at < piece.size ? at : piece.size;
}

__device__ inline void record(std::uint64_t key, std::uint64_t* trouble) {
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  if (key != kNoTrouble)
    atomicMin(reinterpret_cast<unsigned long long*>(trouble), static_cast<unsigned long long>(key));
}

}  // namespace towers::cuda
