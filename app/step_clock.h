#pragma once
// Where the time of a run goes: phases of the step, and the rate between two step lines.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace towers::app {

enum class Phase { input, compute, averaging, update, summaries, saving, evaluation, count };
const char* name_of(Phase phase);

// What a run may stand still at. The others: ranks or parameter servers.
enum class Awaited { input, towers, others, output, evaluation, disk };

class StepClock {
 public:
  // devices_apart: devices of their own make the steps, and the host runs ahead of them, so that
  // laps are the host's time alone.
  explicit StepClock(bool devices_apart = false);

  // Adds the time since the last lap (or construction) to `phase`, and to a timeline that is being
  // recorded (core/trace.h). next: what the loop turns to now.
  void lap(Phase phase, Awaited next);
  void lap(Phase phase);  // what comes next follows from the phase
  // Counts one step of `examples` examples.
  void step_done(std::int64_t examples);

  struct Rate {
    double examples_per_second = 0;
    double seconds_per_step = 0;
  };
  // Over all steps since the last call.
  Rate rate_since_last_display();

  // How many laps there were, and what the loop has turned to since. May be asked for by any
  // thread.
  struct Beat {
    std::uint64_t laps = 0;
    Awaited awaited = Awaited::input;
  };
  Beat beat() const;

  std::chrono::steady_clock::time_point last_lap() const { return last_lap_; }
  bool devices_apart() const { return devices_apart_; }
  double seconds() const;  // since construction
  std::int64_t steps() const { return steps_; }
  std::int64_t examples() const { return examples_; }
  double seconds_in(Phase phase) const { return phases_[static_cast<std::size_t>(phase)]; }
  // Rates of the intervals between displays, the first one (start-up) left out.
  const std::vector<double>& rates() const { return rates_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool devices_apart_;
  Clock::time_point start_, last_lap_, last_display_;
  std::array<double, static_cast<std::size_t>(Phase::count)> phases_{};
  std::int64_t steps_ = 0, examples_ = 0, displayed_steps_ = 0, displayed_examples_ = 0;
  std::vector<double> rates_;
  std::atomic<std::uint64_t> beat_;  // laps, and in the lowest byte what is awaited
};

// The closing table of a run: steps, examples, time, rate and its spread, where the time went and
// what limits the rate; with devices apart, the time is the host's.
// `epochs`: passes over the training set so far, earlier runs included.
std::string final_summary(const StepClock& clock, double epochs);

}  // namespace towers::app
