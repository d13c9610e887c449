#pragma once
// The update's arithmetic and what is known of a step that went wrong, for host and device.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/host_device.h"
#include "cuda/loss_scale_math.h"
#include "cuda/storage.h"

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
// step < 2^36, variable < 2^12, tower < kMostTowers.
inline constexpr int kMostTowers = 1 << 12;
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

// Of variables whose working copy is stored as T.
template <class T>
struct UpdateArguments {
  const Piece* pieces = nullptr;  // device memory
  int piece_count = 0;
  std::int64_t step = 0;  // since compile: of trouble keys

  // Sum over all towers, without weight decay; times the loss scale where there is one.
  const Wide<T>* gradient = nullptr;
  Wide<T> gradient_scale = 1;       // 1 / number of towers
  LossScale* loss_scale = nullptr;  // of float16: read, and moved on for the next step
  // This rank's part of the sum where only one tower made it, tested as tower `own_tower`; null
  // where accumulate_gradients has tested the towers.
  const Wide<T>* own_gradient = nullptr;
  int own_tower = 0;
  // This rank's towers' mean cross-entropies, of towers first_tower + i * tower_stride.
  const float* cross_entropies = nullptr;
  int tower_count = 0, first_tower = 0, tower_stride = 1;

  Wide<T> learning_rate = 0;
  Wide<T> average_weight = 0;  // 1 - average_decay

  Wide<T>* mean = nullptr;  // written: gradient * gradient_scale + weight_decay * variable
  Wide<T>* variables = nullptr;
  Wide<T>* averages = nullptr;
  T* working = nullptr;              // written: the variables as the layers read them; narrow alone
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
TOWERS_HD inline void note(double value, std::uint32_t& largest) {
  if (!std::isfinite(value)) largest = kLargestFinite + 1;
}
template <class W>
TOWERS_HD inline bool is_finite(W value) {
  std::uint32_t largest = 0;
  note(value, largest);
  return largest <= kLargestFinite;
}

template <class W>
struct UpdateSeen {
  std::uint32_t old_value = 0, tower_gradient = 0, gradient = 0, new_value = 0, average = 0;
  W squares = 0;  // sum of squares of the old values
};

template <class W>
struct Updated {
  W mean, variable, average;
};

// What is told of a variable before the update, also where it stays as it is.
template <class W>
TOWERS_HD inline void look_at(W variable, UpdateSeen<W>& seen) {
  note(variable, seen.old_value);
  seen.squares += variable * variable;
}

// unscale: the gradient's factor, arguments.gradient_scale divided by the loss scale.
template <class W>
TOWERS_HD inline W mean_gradient(W unscale, float weight_decay, W gradient, W variable) {
  return gradient * unscale + weight_decay * variable;
}

template <class T, class W = Wide<T>>
TOWERS_HD inline Updated<W> update_value(const UpdateArguments<T>& arguments, W unscale,
                                         float weight_decay, W gradient, W variable, W average,
                                         UpdateSeen<W>& seen) {
  Updated<W> updated;
  updated.mean = mean_gradient(unscale, weight_decay, gradient, variable);
  updated.variable = variable - arguments.learning_rate * updated.mean;
  updated.average = average - arguments.average_weight * (average - updated.variable);
  look_at(variable, seen);
  note(updated.mean, seen.gradient);
  note(updated.variable, seen.new_value);
  note(updated.average, seen.average);
  return updated;
}

// The key of the first cause in what a thread has seen of a piece, or kNoTrouble.
template <class T>
TOWERS_HD inline std::uint64_t trouble_of(const UpdateArguments<T>& arguments, int variable,
                                          const UpdateSeen<Wide<T>>& seen) {
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
