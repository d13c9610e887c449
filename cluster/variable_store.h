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
  virtual std::optional<std::int64_t> push(std::span<const float> gradient,
                                           std::span<float> values) = 0;
  // As pull, with the moving averages of the same moment (where there are several servers, of each
  // one's moment).
  virtual std::optional<std::int64_t> pull(std::span<float> values, std::span<float> averages) = 0;

  // Where the session began that the variables of the last call are of, and a number that is
  // another one for each session.
  virtual const Start& start() const = 0;
  virtual std::uint64_t session() const = 0;
};

// Fills the flat buffers with the variables of the latest checkpoint, or with initial ones, and
// with their averages, where the rules have some (else that span is empty).
using Restore = std::function<Start(std::span<float> values, std::span<float> averages)>;

// In this process, for a training that has no other.
class LocalStore : public VariableStore {
 public:
  LocalStore(std::size_t model_size, const UpdateRules& rules, const Restore& restore);

  std::optional<std::int64_t> pull(std::span<float> values) override;
  std::optional<std::int64_t> push(std::span<const float> gradient,
                                   std::span<float> values) override;
  std::optional<std::int64_t> pull(std::span<float> values, std::span<float> averages) override;
  const Start& start() const override { return parameters_.start(); }
  std::uint64_t session() const override { return parameters_.session(); }

 private:
  Parameters parameters_{1};
};

}  // namespace towers::cluster
