#pragma once
// What each thread did when, for a timeline (--trace_file). One recording at a time for the whole
// process, since the threads of all folders take part. Off, a span costs one relaxed load.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace towers {

using TraceClock = std::chrono::steady_clock;

struct TraceEvent {
  const char* name;     // a literal
  std::int64_t number;  // which step, batch or tower; -1: none
  std::size_t thread;   // index into Trace::threads
  TraceClock::time_point begin, end;
};

struct Trace {
  TraceClock::time_point start;
  std::vector<std::string> threads;  // names, in order of their first event
  std::vector<TraceEvent> events;    // in order of their ends
  std::uint64_t dropped = 0;         // events beyond the limit
};

// Records from now on, at most `most_events` events (40 bytes each). A recording under way is lost.
void start_trace(std::size_t most_events);
// Ends the recording; what threads are in the middle of is not in it.
Trace stop_trace();

namespace trace_detail {
extern std::atomic<bool> recording;
}
inline bool tracing() {
  return trace_detail::recording.load(std::memory_order_relaxed);
}

// How the calling thread is called in the next recordings; cheap, so threads say it at their start.
void name_trace_thread(std::string name);

// Something the calling thread did. Does nothing where no recording has gone on since `begin`.
void add_trace_event(const char* name, std::int64_t number, TraceClock::time_point begin,
                     TraceClock::time_point end);

// An event from construction to destruction.
class TraceSpan {
 public:
  explicit TraceSpan(const char* name, std::int64_t number = -1)
      : name_(tracing() ? name : nullptr), number_(number) {
    if (name_ != nullptr) begin_ = TraceClock::now();
  }
  ~TraceSpan() {
    if (name_ != nullptr) add_trace_event(name_, number_, begin_, TraceClock::now());
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  const char* name_;  // null: was off at the beginning
  std::int64_t number_;
  TraceClock::time_point begin_;
};

}  // namespace towers
