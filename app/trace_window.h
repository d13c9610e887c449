#pragma once
// --trace_file: the first steps of a run as a timeline.

#include <cstdint>
#include <filesystem>

#include "core/trace.h"

namespace towers::app {

class TraceWindow {
 public:
  // Records from now on, for so many steps. An empty path: nothing is recorded, nothing written.
  TraceWindow(const std::filesystem::path& path, std::int64_t steps);
  // Writes what was recorded, where the run ends within the steps, by an error too.
  ~TraceWindow();
  TraceWindow(const TraceWindow&) = delete;
  TraceWindow& operator=(const TraceWindow&) = delete;

  // The step ended at `end`, where the next one begins. After the last one the file is written: an
  // error costs the timeline, not the run, and is logged.
  void step_done(std::int64_t step, TraceClock::time_point end);

 private:
  void write() noexcept;

  std::filesystem::path path_;
  std::int64_t steps_left_;
  TraceClock::time_point step_begin_;
};

}  // namespace towers::app
