#pragma once
// The variables of a model as a training loop sees them, wherever they live.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "cluster/parameters.h"

namespace towers::cluster {

class VariableStore {
 public:
  virtual ~VariableStore() = default;

  // Fills `values` with the variables as they are and returns the global step. Nothing: the process
  // was told to end while it waited.
  virtual std::optional<std::int64_t> pull(std::span<float> values) = 0;
  // Hands over a gradient of the variables that came last; then as pull.
  virtual std::optional<std::int64_t> push(std::span<const float> gradient, float learning_rate,
                                           std::span<float> values) = 0;
};

// Fills the flat buffer with the variables of the latest checkpoint, or with initial ones, and
// returns their global_step.
using Restore = std::function<std::int64_t(std::span<float> values)>;

// In this process, for a training that has no other.
class LocalStore : public VariableStore {
 public:
  LocalStore(std::size_t model_size, const Restore& restore);

  std::optional<std::int64_t> pull(std::span<float> values) override;
  std::optional<std::int64_t> push(std::span<const float> gradient, float learning_rate,
                                   std::span<float> values) override;

 private:
  Parameters parameters_{1};
};

}  // namespace towers::cluster
