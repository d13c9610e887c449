#include "core/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace towers {

std::int64_t decay_steps(std::int64_t examples_per_epoch, std::int64_t examples_per_step,
                         double epochs_per_decay) {
  const double steps = static_cast<double>(examples_per_epoch) /
                       static_cast<double>(examples_per_step) * epochs_per_decay;
  if (!(steps < 9e18)) return std::numeric_limits<std::int64_t>::max();  // never
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(steps));
}

float learning_rate(const Schedule& schedule, std::int64_t step) {
  const std::int64_t drops = step / schedule.decay_steps;
  return schedule.learning_rate * std::pow(schedule.learning_rate_decay, static_cast<float>(drops));
}

float moving_average_decay(const Schedule& schedule, std::int64_t step) {
  const float s = static_cast<float>(step);
  return std::min(schedule.moving_average_decay, (1.0f + s) / (10.0f + s));
}

}  // namespace towers
