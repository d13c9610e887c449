#pragma once
// Learning rate and moving-average decay by step, in TensorFlow's float32 arithmetic.

#include <cstdint>

namespace towers {

struct Schedule {
  float learning_rate = 0.1f;
  float learning_rate_decay = 0.1f;   // factor at each drop
  std::int64_t decay_steps = 136718;  // updates between drops
  float moving_average_decay = 0.9999f;
};

// Updates between two drops of the learning rate: int(examples / examples_per_step * epochs).
// The original passes the batch of one tower, whatever the number of towers (--decay_by=steps);
// with --decay_by=examples examples_per_step counts all towers. At least 1; INT64_MAX (no drop at
// all) where it would be 9e18 or more.
std::int64_t decay_steps(std::int64_t examples_per_epoch, std::int64_t examples_per_step,
                         double epochs_per_decay);

// learning_rate * decay^floor(step / decay_steps), before update number `step` (from 0).
float learning_rate(const Schedule& schedule, std::int64_t step);

// min(moving_average_decay, (1 + step) / (10 + step)), step already incremented by the update.
float moving_average_decay(const Schedule& schedule, std::int64_t step);

}  // namespace towers
