#include "cluster/parameters.h"

#include <algorithm>
#include <cstddef>

namespace towers::cluster {

Parameters::Parameters(int workers)
    : expected_(workers), gradients_(static_cast<std::size_t>(workers)) {}

void Parameters::initialize(std::uint64_t session, std::int64_t step, std::span<const float> values,
                            const UpdateRules& rules) {
  values_.assign(values.begin(), values.end());
  mean_.resize(values.size());
  for (Gradient& gradient : gradients_) gradient.pending = false;
  session_ = session;
  step_ = step;
  dropped_ = 0;
  rules_ = rules;
}

std::span<float> Parameters::begin_gradient(int worker) {
  Gradient& gradient = gradient_of(worker);
  gradient.pending = false;
  gradient.values.resize(values_.size());
  return gradient.values;
}

PushOutcome Parameters::push(int worker, std::uint64_t session, std::int64_t step,
                             float learning_rate) {
  Gradient& gradient = gradient_of(worker);
  // The size differs when a session began between begin_gradient and here.
  if (session != session_ || session == 0 || gradient.values.size() != values_.size())
    return PushOutcome::other_session;
  if (!rules_.synchronous) {
    apply(gradient.values, learning_rate);
    return PushOutcome::applied;
  }
  if (step != step_) {
    ++dropped_;
    return PushOutcome::stale;
  }
  gradient.learning_rate = learning_rate;
  gradient.pending = true;
  update_when_complete();
  return gradient.pending ? PushOutcome::pending : PushOutcome::applied;
}

void Parameters::set_expected(int workers) {
  expected_ = workers;
  update_when_complete();
}

void Parameters::forget(int worker) {
  gradient_of(worker).pending = false;
}

void Parameters::update_when_complete() {
  const auto pending = std::count_if(gradients_.begin(), gradients_.end(),
                                     [](const Gradient& gradient) { return gradient.pending; });
  if (pending == 0 || pending < std::min(rules_.replicas_to_aggregate, expected_)) return;
  std::fill(mean_.begin(), mean_.end(), 0.0f);
  float learning_rate = 0;  // the workers' are equal: it follows from the step
  for (Gradient& gradient : gradients_) {
    if (!gradient.pending) continue;
    gradient.pending = false;
    learning_rate = gradient.learning_rate;
    for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += gradient.values[i];
  }
  const float scale = 1.0f / static_cast<float>(pending);
  for (float& value : mean_) value *= scale;
  apply(mean_, learning_rate);
}

void Parameters::apply(std::span<const float> gradient, float learning_rate) {
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] -= learning_rate * gradient[i];
  ++step_;
}

}  // namespace towers::cluster
