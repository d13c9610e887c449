#include "cli/work_progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace towers::cli {

std::string progress_text(const std::string& of, std::int64_t first, std::int64_t done,
                          std::int64_t total, double seconds) {
  char percent[32];
  std::snprintf(percent, sizeof percent, " (%.1f%%)",
                100.0 * static_cast<double>(done) / static_cast<double>(std::max(total, done)));
  std::string text = of + " " + with_thousands(done) + " of " + with_thousands(total) + percent;
  if (done > first && done < total)
    text += ", " +
            human_duration(seconds * static_cast<double>(total - done) /
                           static_cast<double>(done - first)) +
            " left";
  return text;
}

WorkProgress::WorkProgress(std::string of, std::int64_t first, std::int64_t total, bool shown,
                           double quiet_seconds)
    : of_(std::move(of)),
      first_(first),
      total_(total),
      shown_(shown),
      quiet_seconds_(quiet_seconds),
      start_(Clock::now()),
      last_(start_) {}

void WorkProgress::update(std::int64_t done) {
  if (!shown_) return;
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - start_).count();
  // More often than anybody reads it would cost a fast step.
  if (seconds < quiet_seconds_ || (now - last_ < std::chrono::milliseconds(50) && done < total_))
    return;
  last_ = now;
  line_.update(progress_text(of_, first_, done, total_, seconds),
               static_cast<double>(done) / static_cast<double>(std::max(total_, done)));
}

}  // namespace towers::cli
