#pragma once
// The passes of cpu/update.h and cpu/average.h in double precision.

#include <cstddef>
#include <span>

#include "cpu/update.h"

namespace towers::cpu::fp64 {

// What others see of a value is its float, so one that is too large for that counts as not finite.
bool all_finite(std::size_t size, const double* values);

NonFiniteSeen update(std::size_t size, double learning_rate, double decay_rest,
                     const double* gradient, double* value, double* average);
double sum_of_squares(std::size_t size, const double* values);
// The mean over towers, summed in their order, for begin <= i < end.
void average(std::span<const double* const> towers, std::size_t begin, std::size_t end,
             double* out);

}  // namespace towers::cpu::fp64
