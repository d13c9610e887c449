#pragma once
// A progress line with the time left, from the rate so far.

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/console.h"

namespace towers::cli {

// "step 1,200 of 10,000 (12.0%), 8 min 20 s left". On a terminal it is gone when the work ends;
// elsewhere there are plain lines, every 10 % or 10 s.
class WorkProgress {
 public:
  // of: what is counted, "step" or "evaluated". first: of them that were done before, total: in
  // all. Nothing is shown within the first `quiet_seconds`, which most work is done in.
  WorkProgress(std::string of, std::int64_t first, std::int64_t total, bool shown,
               double quiet_seconds = 0);
  ~WorkProgress() { line_.erase(); }

  // done: so far, those before included.
  void update(std::int64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  const std::string of_;
  const std::int64_t first_, total_;
  const bool shown_;
  const double quiet_seconds_;
  const Clock::time_point start_;
  Clock::time_point last_;  // that a text was made
  ProgressLine line_;
};

// The text for a share of the work that took `seconds`.
std::string progress_text(const std::string& of, std::int64_t first, std::int64_t done,
                          std::int64_t total, double seconds);

}  // namespace towers::cli
