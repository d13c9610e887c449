#pragma once
// From bytes done to data/cifar10_archive.h's Progress.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "data/cifar10_archive.h"

namespace towers::data {

// Hands progress on a few times a second, with the rate over the last seconds.
class ProgressMeter {
 public:
  // doing: as Progress has it. `options` must outlive it.
  ProgressMeter(const char* doing, std::string file, const DownloadOptions& options)
      : doing_(doing), file_(std::move(file)), options_(options) {}

  // What is over before the first interval is has no progress.
  void begin_quietly() { samples_.push_back({Clock::now(), 0}); }

  void update(std::uint64_t done, std::uint64_t total, bool last = false) {
    if (!options_.progress) return;
    const Clock::time_point now = Clock::now();
    if (!last && !samples_.empty() && now - samples_.back().when < kInterval) return;
    // After a start from the beginning the earlier samples say nothing.
    if (!samples_.empty() && done < samples_.back().done) samples_.clear();
    samples_.push_back({now, done});
    if (samples_.size() > kSamples) samples_.pop_front();
    Progress progress{doing_, file_, done, total, 0, 0};
    const double seconds = std::chrono::duration<double>(now - samples_.front().when).count();
    if (seconds > 0)
      progress.bytes_per_second = static_cast<double>(done - samples_.front().done) / seconds;
    if (progress.bytes_per_second > 0 && total > done)
      progress.seconds_left = static_cast<double>(total - done) / progress.bytes_per_second;
    options_.progress(progress);
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Sample {
    Clock::time_point when;
    std::uint64_t done;
  };
  static constexpr auto kInterval = std::chrono::milliseconds(250);
  static constexpr std::size_t kSamples = 20;  // five seconds

  const char* doing_;
  std::string file_;
  const DownloadOptions& options_;
  std::deque<Sample> samples_;
};

}  // namespace towers::data
