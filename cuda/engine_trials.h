#pragma once
// Chooses among a library's engines for one piece of work by running them as a step does: in a
// captured graph. A launch by the host takes longer than many of them, and some cannot be captured.
// Knows nothing of the library.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cuda/runtime.h"
#include "cuda/stopwatch.h"

namespace towers::cuda {

// Made and used while the stream's device is the current one.
class EngineTrials {
 public:
  // Enqueues one run of an engine on the stream. Returns why it does not start, or nothing. Called
  // again for the same engine it allocates nothing.
  using Enqueue = std::function<std::string(std::int64_t engine)>;
  EngineTrials(Stream& stream, Enqueue enqueue) : stream_(stream), enqueue_(std::move(enqueue)) {}

  // Whether it starts, by itself and captured. Where it does, it has run when this returns.
  bool runs(std::int64_t engine);
  // The one that takes the least time of those that do; -1: there is none.
  std::int64_t fastest(const std::vector<std::int64_t>& engines);
  // Why the last one that did not start, in a line; or empty.
  const std::string& refusal() const { return refusal_; }

 private:
  bool starts(std::int64_t engine);
  // So many runs, launched once; nothing where it cannot be captured.
  std::optional<Graph> capture(std::int64_t engine, int runs);

  Stream& stream_;
  Enqueue enqueue_;
  Stopwatch watch_;
  std::string refusal_;
};

}  // namespace towers::cuda
