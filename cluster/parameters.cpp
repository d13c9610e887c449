#include "cluster/parameters.h"

#include <algorithm>
#include <cstddef>

namespace towers::cluster {

Parameters::Parameters(int workers)
    : expected_(workers), gradients_(static_cast<std::size_t>(workers)) {}

void Parameters::initialize(std::uint64_t session, const Start& start, std::span<const float> state,
                            const UpdateRules& rules) {
  const std::size_t size = rules.moving_averages ? state.size() / 2 : state.size();
  values_.assign(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(size));
  averages_.assign(state.begin() + static_cast<std::ptrdiff_t>(size), state.end());
  mean_.resize(size);
  for (Gradient& gradient : gradients_) gradient.pending = false;
  session_ = session;
  step_ = start.step;
  start_ = start;
  dropped_ = 0;
  rules_ = rules;
}

std::span<float> Parameters::begin_gradient(int worker) {
  Gradient& gradient = gradient_of(worker);
  gradient.pending = false;
  gradient.values.resize(values_.size());
  return gradient.values;
}

PushOutcome Parameters::push(int worker, std::uint64_t session, std::int64_t step) {
  Gradient& gradient = gradient_of(worker);
  // The size differs when a session began between begin_gradient and here.
  if (session != session_ || session == 0 || gradient.values.size() != values_.size())
    return PushOutcome::other_session;
  if (!rules_.synchronous) {
    apply(gradient.values);
    return PushOutcome::applied;
  }
  if (step != step_) {
    ++dropped_;
    return PushOutcome::stale;
  }
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
  bool first = true;
  for (Gradient& gradient : gradients_) {
    if (!gradient.pending) continue;
    gradient.pending = false;
    if (first)
      std::copy(gradient.values.begin(), gradient.values.end(), mean_.begin());
    else
      for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += gradient.values[i];
    first = false;
  }
  const float count = static_cast<float>(pending);
  for (float& value : mean_) value /= count;
  apply(mean_);
}

void Parameters::apply(std::span<const float> gradient) {
  const float rate = learning_rate(rules_.schedule, step_);
  ++step_;
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] -= rate * gradient[i];
  if (!rules_.moving_averages) return;
  const float rest = 1.0f - moving_average_decay(rules_.schedule, step_);
  for (std::size_t i = 0; i < values_.size(); ++i)
    averages_[i] -= rest * (averages_[i] - values_[i]);
}

}  // namespace towers::cluster
