#pragma once
// A tower whose layers are timed, for `towers bench --what=layers`. It runs the plan of the trainer
// itself, with a clock in it: layers stay as fused and as cached as they are in a step.

#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"
#include "cpu/backend.h"

namespace towers::cpu {

struct LayerTime {
  std::size_t layer = 0;  // index into Net::layers
  double forward = 0;     // seconds of a pass, on all threads
  double backward = 0;
};

class TimedTower {
 public:
  // One tower on the first device; of `compile` batch_size, precision and convolution count. Throws
  // as make_backend and Backend::compile do.
  TimedTower(const Options& options, const Net& net, const CompileOptions& compile);
  ~TimedTower();

  // The gradients of a batch of the compiled size; no update.
  void run(const Batch& batch);
  // Forgets what was measured so far.
  void reset();
  // Mean over the passes since the last reset; layers that took no time of their own are left out.
  std::vector<LayerTime> times() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace towers::cpu
