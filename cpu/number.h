#pragma once
// The numbers that variables and gradients are kept in, with the plan that computes gradients and
// the passes over them.

#include <memory>
#include <span>

#include "cpu/fp64_plan.h"
#include "cpu/fp64_update.h"
#include "cpu/kernels.h"
#include "cpu/plan.h"

namespace towers::cpu {

// For --precision=fp32 and bf16.
struct Fp32 {
  using Real = float;
  using Plan = cpu::Plan;

  static std::unique_ptr<Plan> make_plan(const Net& net, const VariableLayout& layout,
                                         const PlanSetting& setting, const Kernels& kernels,
                                         ThreadPool& pool) {
    return std::make_unique<Plan>(net, layout, setting, kernels, pool);
  }
  static NonFiniteSeen update(const Kernels& kernels, std::size_t size, float learning_rate,
                              float decay_rest, const float* gradient, float* value,
                              float* average) {
    return kernels.update.update(size, learning_rate, decay_rest, gradient, value, average);
  }
  static double sum_of_squares(const Kernels& kernels, std::size_t size, const float* values) {
    return kernels.update.sum_of_squares(size, values);
  }
  static void average(const Kernels& kernels, std::span<const float* const> towers,
                      std::size_t begin, std::size_t end, float* out) {
    kernels.average.average(towers, begin, end, out);
  }
  static bool all_finite(std::size_t size, const float* values) {
    return cpu::all_finite(size, values);
  }
};

struct Fp64 {
  using Real = double;
  using Plan = Fp64Plan;

  static std::unique_ptr<Plan> make_plan(const Net& net, const VariableLayout& layout,
                                         const PlanSetting& setting, const Kernels&,
                                         ThreadPool& pool) {
    return std::make_unique<Plan>(net, layout, setting.batch_size, setting.training, pool);
  }
  static NonFiniteSeen update(const Kernels&, std::size_t size, double learning_rate,
                              double decay_rest, const double* gradient, double* value,
                              double* average) {
    return fp64::update(size, learning_rate, decay_rest, gradient, value, average);
  }
  static double sum_of_squares(const Kernels&, std::size_t size, const double* values) {
    return fp64::sum_of_squares(size, values);
  }
  static void average(const Kernels&, std::span<const double* const> towers, std::size_t begin,
                      std::size_t end, double* out) {
    fp64::average(towers, begin, end, out);
  }
  static bool all_finite(std::size_t size, const double* values) {
    return fp64::all_finite(size, values);
  }
};

}  // namespace towers::cpu
