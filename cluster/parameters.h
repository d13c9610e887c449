#pragma once
// What a parameter server holds and how it changes: no network, no clock, no threads. One caller at
// a time.

#include <cstdint>
#include <span>
#include <vector>

#include "core/schedule.h"

namespace towers::cluster {

// How gradients become updates; the chief decides for all servers.
struct UpdateRules {
  bool synchronous = false;
  // Synchronous: gradients per update. Fewer than there are workers means that the slowest ones
  // are backup workers, whose gradients come too late and are dropped.
  int replicas_to_aggregate = 1;
  Schedule schedule{};  // by the servers' own count of updates
  bool moving_averages = false;
};

// Where the chief's variables stand. The seed and the position in the example stream are for the
// workers, which have no other way to know them.
struct Start {
  std::int64_t step = 0;  // updates made before
  std::uint64_t seed = 0;
  std::uint64_t position = 0;
};

enum class PushOutcome {
  applied,        // the variables are new
  pending,        // wait until `updates` changes
  stale,          // computed from older variables; dropped and counted
  other_session,  // the chief has put other variables in place meanwhile; dropped
};

// One server's variables and their moving averages, as flat buffers, under plain gradient descent:
//   value -= learning_rate * gradient; average -= (1 - decay) * (average - value)
// in the arithmetic of the CPU's own update, so that one worker alone makes the same bytes.
//
// Asynchronous: each push is an update. Synchronous, after TensorFlow's SyncReplicasOptimizer: an
// update is the mean of replicas_to_aggregate gradients that were computed from the current
// variables, at most one per worker. The mean is taken in the order of the workers' numbers, so it
// does not depend on who was first, and is that of as many towers of one process.
class Parameters {
 public:
  explicit Parameters(int workers);

  // Begins a session: the chief's variables and, behind them, their averages where the rules have
  // some. Gradients of an earlier session are dropped. session: not 0.
  void initialize(std::uint64_t session, const Start& start, std::span<const float> state,
                  const UpdateRules& rules);

  std::uint64_t session() const { return session_; }  // 0: not initialized yet
  std::int64_t step() const { return step_; }         // updates made, counted on from the chief's
  const Start& start() const { return start_; }
  std::span<const float> values() const { return values_; }
  std::span<const float> averages() const { return averages_; }  // empty: the rules have none
  const UpdateRules& rules() const { return rules_; }
  std::int64_t dropped() const { return dropped_; }  // stale gradients of this session

  // Where a worker's next gradient goes (values().size() values); what it had pending is gone.
  std::span<float> begin_gradient(int worker);
  // The same place again, for the rest of a gradient that comes in pieces.
  std::span<float> gradient(int worker) { return gradient_of(worker).values; }
  // Hands that gradient over. step: the one that came with the variables it was computed from.
  PushOutcome push(int worker, std::uint64_t session, std::int64_t step);

  // How many workers there still are; no update waits for more than that.
  void set_expected(int workers);
  // A lost worker's pending gradient does not count.
  void forget(int worker);
  bool is_pending(int worker) const { return gradient_of(worker).pending; }

 private:
  struct Gradient {
    std::vector<float> values;
    bool pending = false;
  };

  const Gradient& gradient_of(int worker) const {
    return gradients_[static_cast<std::size_t>(worker)];
  }
  Gradient& gradient_of(int worker) { return gradients_[static_cast<std::size_t>(worker)]; }
  void update_when_complete();
  void apply(std::span<const float> gradient);

  std::uint64_t session_ = 0;
  std::int64_t step_ = 0;
  Start start_;
  std::int64_t dropped_ = 0;
  UpdateRules rules_;
  int expected_;
  std::vector<float> values_, averages_, mean_;
  std::vector<Gradient> gradients_;  // by worker
};

}  // namespace towers::cluster
