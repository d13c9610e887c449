#include "app/watchdog.h"

#include <algorithm>
#include <utility>

#include "cli/format.h"

namespace towers::app {
namespace {

const char* text_of(Awaited awaited, const char* others) {
  switch (awaited) {
    case Awaited::input:
      break;
    case Awaited::towers:
      return "the towers";
    case Awaited::others:
      return others;
    case Awaited::output:
      return "whoever takes its lines, or the disk";
    case Awaited::evaluation:
      return "the evaluation";
    case Awaited::disk:
      return "the disk, to save a checkpoint";
  }
  return "input, the next batch of images";
}

}  // namespace

Watchdog::Watchdog(const StepClock& clock, double seconds, Say warn, Say inform, const char* others)
    : clock_(clock),
      limit_(seconds),
      warn_(std::move(warn)),
      inform_(std::move(inform)),
      others_(others) {
  if (seconds > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::watch() {
  using Clock = std::chrono::steady_clock;
  const auto text = [](Clock::duration time) {
    return cli::human_duration(std::chrono::duration<double>(time).count());
  };
  // Often enough to be in time, seldom enough to cost nothing.
  const auto pause = std::min<std::chrono::duration<double>>(limit_ / 4, std::chrono::seconds(1));
  StepClock::Beat seen = clock_.beat();
  Clock::time_point since = Clock::now();
  auto next = limit_;
  std::unique_lock lock(mutex_);
  for (bool ended = false; !ended;) {
    ended = changed_.wait_for(lock, pause, [this] { return ending_; });
    const StepClock::Beat beat = clock_.beat();
    const Clock::duration still = Clock::now() - since;
    if (beat.laps != seen.laps) {
      if (next > limit_) inform_("going on after a standstill of " + text(still));
      seen = beat;
      since = Clock::now();
      next = limit_;
    } else if (still >= next && !ended) {
      warn_("nothing has moved for " + text(still) + ": waiting for " +
            text_of(beat.awaited, others_));
      next *= 2;
    }
  }
}

}  // namespace towers::app
