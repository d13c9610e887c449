#include "cpu/fp64_update.h"

#include <algorithm>
#include <cmath>

namespace towers::cpu::fp64 {
namespace {

bool is_finite(double value) {
  return std::isfinite(static_cast<float>(value));
}

}  // namespace

bool all_finite(std::size_t size, const double* values) {
  return std::all_of(values, values + size, is_finite);
}

NonFiniteSeen update(std::size_t size, double learning_rate, double decay_rest,
                     const double* gradient, double* value, double* average) {
  NonFiniteSeen seen;
  for (std::size_t i = 0; i < size; ++i) {
    const double old = value[i];
    value[i] -= learning_rate * gradient[i];
    average[i] -= decay_rest * (average[i] - value[i]);
    if (!is_finite(gradient[i])) seen.gradient = true;
    if (!is_finite(old)) seen.old_value = true;
    if (!is_finite(value[i])) seen.new_value = true;
    if (!is_finite(average[i])) seen.average = true;
  }
  return seen;
}

double sum_of_squares(std::size_t size, const double* values) {
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += values[i] * values[i];
  return sum;
}

void average(std::span<const double* const> towers, std::size_t begin, std::size_t end,
             double* out) {
  for (std::size_t i = begin; i < end; ++i) {
    double sum = 0;
    for (const double* tower : towers) sum += tower[i];
    out[i] = sum / static_cast<double>(towers.size());
  }
}

}  // namespace towers::cpu::fp64
