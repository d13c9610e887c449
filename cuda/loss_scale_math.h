#pragma once
// Dynamic loss scaling for float16, whose smallest number is 6e-8: the loss's gradient is
// multiplied by a scale before it goes backward, and the gradients of the variables are divided by
// it again in the update. Where one of them is not finite the scale was too large: the step is left
// out and the scale halved. Micikevicius et al., "Mixed Precision Training" (ICLR 2018), 3.2; the
// constants are those of TensorFlow's DynamicLossScale.

#include <cstdint>

#include "core/host_device.h"

namespace towers::cuda {

inline constexpr float kFirstLossScale = 32768;  // 2^15
inline constexpr float kLeastLossScale = 1;
inline constexpr float kLargestLossScale = 0x1p126f;  // its inverse is a normal number as well
inline constexpr std::int32_t kStepsToGrow = 2000;

// Of one GPU; all GPUs see the same sums of gradients and so keep the same one. A power of two, so
// that neither multiplying nor dividing rounds.
struct LossScale {
  float scale = kFirstLossScale;
  std::int32_t good_steps = 0;  // since it changed
  std::int32_t overflow = 0;    // not 0: a gradient of this step is not finite

  // At the least scale it is no fault of the scale: then the step is made, and the gradient named.
  TOWERS_HD constexpr bool skips_step() const { return overflow != 0 && scale > kLeastLossScale; }
};

// For the step after one with `now`.
TOWERS_HD constexpr LossScale next_loss_scale(const LossScale& now) {
  LossScale next = now;
  next.overflow = 0;
  next.good_steps = now.overflow != 0 ? 0 : now.good_steps + 1;
  if (now.overflow != 0) {
    next.scale = now.scale / 2 > kLeastLossScale ? now.scale / 2 : kLeastLossScale;
  } else if (next.good_steps == kStepsToGrow) {
    next.scale = now.scale < kLargestLossScale ? now.scale * 2 : now.scale;
    next.good_steps = 0;
  }
  return next;
}

}  // namespace towers::cuda
