#pragma once
// The update's arithmetic and what is known of a step that went wrong, for host and device.

#include <cstddef>
#include <cstdint>
#include <cstring>

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

// The largest magnitudes met, as bits: those of infinities and NaN are above kLargestFinite.
inline constexpr std::uint32_t kLargestFinite = 0x7f7fffff;
TOWERS_HD inline void note(float value, std::uint32_t& largest) {
  std::uint32_t bits;
#ifdef __CUDA_ARCH__
  bits = __float_as_uint(value);
#else
  static_assert(sizeof bits == sizeof value);
  std::memcpy(&bits, &value, sizeof bits);
#endif
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  largest = magnitude > largest ? magnitude : largest;
}
TOWERS_HD inline bool is_finite(float value) {
  std::uint32_t largest = 0;
  note(value, largest);
  return largest <= kLargestFinite;
}

struct UpdateSeen {
  std::uint32_t old_value = 0, tower_gradient = 0, gradient = 0, new_value = 0, average = 0;
  float squares = 0;  // sum of squares of the old values
};

struct Updated {
  float mean, variable, average;
};

TOWERS_HD inline Updated update_value(const UpdateArguments& arguments, float weight_decay,
                                      float gradient, float variable, float average,
                                      UpdateSeen& seen) {
  Updated updated;
  updated.mean = gradient * arguments.gradient_scale + weight_decay * variable;
  updated.variable = variable - arguments.learning_rate * updated.mean;
  updated.average = average - arguments.average_weight * (average - updated.variable);
  note(variable, seen.old_value);
  note(updated.mean, seen.gradient);
  note(updated.variable, seen.new_value);
  note(updated.average, seen.average);
  seen.squares += variable * variable;
  return updated;
}

// The key of the first cause in what a thread has seen of a piece, or kNoTrouble.
TOWERS_HD inline std::uint64_t trouble_of(const UpdateArguments& arguments, int variable,
                                          const UpdateSeen& seen) {
  const auto key = [&](Trouble trouble, int tower) {
    return trouble_key(arguments.step, trouble, variable, tower);
  };
  if (seen.old_value > kLargestFinite) return key(Trouble::old_value, 0);
  if (seen.tower_gradient > kLargestFinite)
    return key(Trouble::tower_gradient, arguments.own_tower);
  if (seen.gradient > kLargestFinite) return key(Trouble::gradient, 0);
  if (seen.new_value > kLargestFinite) return key(Trouble::new_value, 0);
  if (seen.average > kLargestFinite) return key(Trouble::average, 0);
  return kNoTrouble;
}

// Whether an earlier step went wrong: then the variables stay as that one left them.
TOWERS_HD constexpr bool is_stopped(std::uint64_t trouble, std::int64_t step) {
  return trouble_fields(trouble).step < step;
}

}  // namespace towers::cuda
