#pragma once
// The update's arithmetic and what is known of a step that went wrong, for host and device.

#include <cstddef>
#include <cstdint>

#include "core/host_device.h"

namespace towers::cuda {

// A part of one variable in the flat buffer; a block of threads takes one. begin is a multiple of
// 16 values. Pieces cover every variable in the layout's order.
struct Piece {
  std::uint32_t variable = 0;
  std::uint32_t begin = 0;
  std::uint32_t size = 0;  // at most kPieceSize
  float weight_decay = 0;
};
inline constexpr std::uint32_t kPieceSize = 4096;

// What went wrong in a step, the cause before its consequences: a variable that was bad before the
// update explains all else; then come a tower's gradient, the gradients' sum over towers, and what
// the update itself made too large; the loss where nothing more precise is known.
enum class Trouble : std::uint32_t {
  old_value,
  tower_gradient,
  gradient,
  new_value,
  average,
  loss
};

// Keys order by step, then by cause, variable and tower: atomicMin keeps the first trouble.
// step < 2^36, variable < 2^12, tower < 2^12.
inline constexpr std::uint64_t kNoTrouble = ~std::uint64_t{0};
TOWERS_HD constexpr std::uint64_t trouble_key(std::int64_t step, Trouble trouble, int variable,
                                              int tower) {
  return static_cast<std::uint64_t>(step) << 28 | static_cast<std::uint64_t>(trouble) << 24 |
         static_cast<std::uint64_t>(variable) << 12 | static_cast<std::uint64_t>(tower);
}
struct TroubleFields {
  std::int64_t step;
  Trouble trouble;
  int variable, tower;
};
TOWERS_HD constexpr TroubleFields trouble_fields(std::uint64_t key) {
  return {static_cast<std::int64_t>(key >> 28), static_cast<Trouble>(key >> 24 & 15),
          static_cast<int>(key >> 12 & 4095), static_cast<int>(key & 4095)};
}

struct UpdateArguments {
  const Piece* pieces = nullptr;  // device memory
  int piece_count = 0;
  std::int64_t step = 0;  // since compile: of trouble keys

  const float* gradient = nullptr;  // sum over all towers, without weight decay
  float gradient_scale = 1;         // 1 / number of towers
  // This rank's part of the sum where only one tower made it, tested as tower `own_tower`; null
  // where accumulate_gradients has tested the towers.
  const float* own_gradient = nullptr;
  int own_tower = 0;
  // This rank's towers' mean cross-entropies, of towers first_tower + i * tower_stride.
  const float* cross_entropies = nullptr;
  int tower_count = 0, first_tower = 0, tower_stride = 1;

  float learning_rate = 0;
  float average_weight = 0;  // 1 - average_decay

  float* mean = nullptr;  // written: gradient * gradient_scale + weight_decay * variable
  float* variables = nullptr;
  float* averages = nullptr;
  float* squares = nullptr;          // [piece_count]: sum of squares of the variables before
  std::uint64_t* trouble = nullptr;  // nothing is written once it holds a key of an earlier step
};

}  // namespace towers::cuda
