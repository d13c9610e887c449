#pragma once
// Where the time of a pass goes, layer by layer: for `towers bench --what=layers` alone.

#include <chrono>
#include <cstddef>
#include <vector>

namespace towers::cpu {

enum class Pass { forward, backward };

// Seconds of threads by layer and pass. Each worker of one pool adds to numbers of its own.
class LayerClock {
 public:
  LayerClock(std::size_t layers, int threads)
      : threads_(threads), seconds_(static_cast<std::size_t>(threads)) {
    for (auto& worker : seconds_) worker.resize(2 * layers + kApart);
  }

  // Measures its own lifetime. A null clock measures nothing.
  class Lap {
   public:
    // Of one worker. A layer that the whole pool works on at once is timed by its leader, with
    // `threads` the pool's.
    Lap(LayerClock* clock, Pass pass, std::size_t layer, int worker, int threads = 1)
        : clock_(clock), pass_(pass), layer_(layer), worker_(worker), threads_(threads) {
      if (clock_ != nullptr) start_ = Clock::now();
    }
    ~Lap() {
      if (clock_ == nullptr) return;
      const std::chrono::duration<double> time = Clock::now() - start_;
      clock_->seconds_[static_cast<std::size_t>(worker_)][index(pass_, layer_)] +=
          time.count() * threads_;
    }
    Lap(const Lap&) = delete;
    Lap& operator=(const Lap&) = delete;

   private:
    using Clock = std::chrono::steady_clock;
    LayerClock* clock_;
    Pass pass_;
    std::size_t layer_;
    int worker_, threads_;
    Clock::time_point start_;
  };

  void reset() {
    for (auto& worker : seconds_) worker.assign(worker.size(), 0);
  }
  // Of all threads, by their number: what the layer takes of a step where all are busy.
  double seconds(Pass pass, std::size_t layer) const {
    double sum = 0;
    for (const auto& worker : seconds_) sum += worker[index(pass, layer)];
    return sum / threads_;
  }

 private:
  static constexpr std::size_t kApart = 16;  // workers' numbers lie in cache lines of their own

  static std::size_t index(Pass pass, std::size_t layer) {
    return 2 * layer + (pass == Pass::backward ? 1 : 0);
  }

  int threads_;
  std::vector<std::vector<double>> seconds_;  // [worker][layer][pass]
};

}  // namespace towers::cpu
