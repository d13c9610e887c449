#include "cluster/variable_store.h"

#include <algorithm>
#include <vector>

namespace towers::cluster {
namespace {

constexpr std::uint64_t kSession = 1;  // the only one

}  // namespace

LocalStore::LocalStore(std::size_t model_size, const UpdateRules& rules, const Restore& restore) {
  std::vector<float> state(rules.moving_averages ? 2 * model_size : model_size);
  const std::span<float> all = state;
  const Start start = restore(all.first(model_size), all.subspan(model_size));
  parameters_.initialize(kSession, start, state, rules);
}

std::optional<std::int64_t> LocalStore::pull(std::span<float> values) {
  std::copy(parameters_.values().begin(), parameters_.values().end(), values.begin());
  return parameters_.step();
}

std::optional<std::int64_t> LocalStore::push(std::span<const float> gradient,
                                             std::span<float> values) {
  std::copy(gradient.begin(), gradient.end(), parameters_.begin_gradient(0).begin());
  parameters_.push(0, kSession, parameters_.step());
  return pull(values);
}

std::optional<std::int64_t> LocalStore::pull(std::span<float> values, std::span<float> averages) {
  std::copy(parameters_.averages().begin(), parameters_.averages().end(), averages.begin());
  return pull(values);
}

}  // namespace towers::cluster
