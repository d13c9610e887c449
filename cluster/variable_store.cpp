#include "cluster/variable_store.h"

#include <algorithm>
#include <vector>

namespace towers::cluster {
namespace {

constexpr std::uint64_t kSession = 1;  // the only one

}  // namespace

LocalStore::LocalStore(std::size_t model_size, const Restore& restore) {
  std::vector<float> values(model_size);
  const std::int64_t step = restore(values);
  parameters_.initialize(kSession, step, values, {});
}

std::optional<std::int64_t> LocalStore::pull(std::span<float> values) {
  std::copy(parameters_.values().begin(), parameters_.values().end(), values.begin());
  return parameters_.step();
}

std::optional<std::int64_t> LocalStore::push(std::span<const float> gradient, float learning_rate,
                                             std::span<float> values) {
  std::copy(gradient.begin(), gradient.end(), parameters_.begin_gradient(0).begin());
  parameters_.push(0, kSession, parameters_.step(), learning_rate);
  return pull(values);
}

}  // namespace towers::cluster
