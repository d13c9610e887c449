#include "app/step_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "cli/console.h"
#include "core/trace.h"

namespace towers::app {
namespace {

constexpr std::size_t kMaxRates = 1u << 16;  // an endless run must not grow

double seconds_between(std::chrono::steady_clock::time_point a,
                       std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

std::string rate_text(const StepClock& clock) {
  const double mean = static_cast<double>(clock.examples()) / std::max(clock.seconds(), 1e-9);
  char text[128];
  const std::vector<double>& rates = clock.rates();
  if (rates.size() < 2) {
    std::snprintf(text, sizeof text, "%.1f examples/sec", mean);
    return text;
  }
  std::vector<double> sorted = rates;
  std::sort(sorted.begin(), sorted.end());
  const double n = static_cast<double>(sorted.size());
  const double middle = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (double r : sorted) squares += (r - middle) * (r - middle);
  std::snprintf(text, sizeof text, "%.1f examples/sec (between displays: median %.1f, +- %.1f)",
                mean, sorted[sorted.size() / 2], std::sqrt(squares / (n - 1)));
  return text;
}

// In the order of the training loops.
Awaited next_after(Phase phase) {
  switch (phase) {
    case Phase::input:
    case Phase::averaging:
      return Awaited::towers;
    case Phase::compute:
    case Phase::update:
      return Awaited::others;
    case Phase::summaries:
      return Awaited::evaluation;
    case Phase::evaluation:
      return Awaited::disk;
    case Phase::saving:
    case Phase::count:
      break;
  }
  return Awaited::input;
}

}  // namespace

const char* name_of(Phase phase) {
  static constexpr const char* kNames[] = {"input",     "compute", "averaging", "update",
                                           "summaries", "saving",  "evaluation"};
  return kNames[static_cast<std::size_t>(phase)];
}

StepClock::StepClock(bool devices_apart)
    : devices_apart_(devices_apart),
      start_(Clock::now()),
      last_lap_(start_),
      last_display_(start_),
      beat_(static_cast<std::uint64_t>(Awaited::input)) {}

void StepClock::lap(Phase phase) {
  lap(phase, next_after(phase));
}

void StepClock::lap(Phase phase, Awaited next) {
  const Clock::time_point now = Clock::now();
  phases_[static_cast<std::size_t>(phase)] += seconds_between(last_lap_, now);
  // Below a microsecond nothing was done: steps without summaries, evaluation and saving.
  if (tracing() && now - last_lap_ >= std::chrono::microseconds(1))
    add_trace_event(name_of(phase), -1, last_lap_, now);
  last_lap_ = now;
  const std::uint64_t laps = (beat_.load(std::memory_order_relaxed) >> 8) + 1;
  beat_.store(laps << 8 | static_cast<std::uint64_t>(next), std::memory_order_relaxed);
}

StepClock::Beat StepClock::beat() const {
  const std::uint64_t beat = beat_.load(std::memory_order_relaxed);
  return {beat >> 8, static_cast<Awaited>(beat & 0xff)};
}

void StepClock::step_done(std::int64_t examples) {
  ++steps_;
  examples_ += examples;
}

StepClock::Rate StepClock::rate_since_last_display() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::max(seconds_between(last_display_, now), 1e-9);
  const std::int64_t steps = std::max<std::int64_t>(1, steps_ - displayed_steps_);
  const Rate rate{static_cast<double>(examples_ - displayed_examples_) / seconds,
                  seconds / static_cast<double>(steps)};
  const bool first = displayed_steps_ == 0;
  last_display_ = now;
  displayed_steps_ = steps_;
  displayed_examples_ = examples_;
  if (!first && rates_.size() < kMaxRates) rates_.push_back(rate.examples_per_second);
  return rate;
}

double StepClock::seconds() const {
  return seconds_between(start_, Clock::now());
}

std::string final_summary(const StepClock& clock, double epochs) {
  const double total = clock.seconds();
  char epochs_text[32];
  std::snprintf(epochs_text, sizeof epochs_text, "%.2f", epochs);
  std::vector<std::pair<std::string, std::string>> rows = {
      {"steps", cli::with_thousands(clock.steps())},
      {"examples", cli::with_thousands(clock.examples())},
      {"epochs", epochs_text},
      {"time", cli::human_duration(total)},
      {"rate", rate_text(clock)}};
  const char* limit = "compute";
  double most = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(Phase::count); ++row) {
    const Phase phase = static_cast<Phase>(row);
    const char* name = name_of(phase);
    const double seconds = clock.seconds_in(phase);
    if (seconds > most) {
      most = seconds;
      // A host that computes nothing itself waits there for devices.
      const bool steps =
          phase == Phase::compute || phase == Phase::averaging || phase == Phase::update;
      limit = clock.devices_apart() && steps ? "GPUs" : name;
    }
    if (phase == Phase::evaluation && seconds == 0) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%5.1f %%  (%.2f s)", 100 * seconds / std::max(total, 1e-9),
                  seconds);
    rows.emplace_back((clock.devices_apart() ? "host's time in " : "time in ") + std::string(name),
                      text);
  }
  rows.emplace_back("limited by", limit);
  return cli::table(rows);
}

}  // namespace towers::app
