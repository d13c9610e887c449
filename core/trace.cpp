#include "core/trace.h"

#include <mutex>
#include <utility>

namespace towers {
namespace {

struct Recording {
  std::mutex mutex;
  std::uint64_t generation = 0;  // which recording
  std::size_t most_events = 0;
  Trace trace;
};

Recording& the_recording() {
  static Recording instance;
  return instance;
}

struct ThisThread {
  std::string name = "thread";
  std::uint64_t generation = 0;  // the recording that `index` is of
  std::size_t index = 0;
};
thread_local ThisThread this_thread;

}  // namespace

namespace trace_detail {
std::atomic<bool> recording{false};
}

void start_trace(std::size_t most_events) {
  Recording& recording = the_recording();
  const std::lock_guard lock(recording.mutex);
  ++recording.generation;
  recording.most_events = most_events;
  recording.trace = {};
  recording.trace.start = TraceClock::now();
  trace_detail::recording = true;
}

Trace stop_trace() {
  Recording& recording = the_recording();
  const std::lock_guard lock(recording.mutex);
  trace_detail::recording = false;
  return std::exchange(recording.trace, {});
}

void name_trace_thread(std::string name) {
  this_thread.name = std::move(name);
  this_thread.generation = 0;
}

void add_trace_event(const char* name, std::int64_t number, TraceClock::time_point begin,
                     TraceClock::time_point end) {
  Recording& recording = the_recording();
  const std::lock_guard lock(recording.mutex);
  Trace& trace = recording.trace;
  if (!tracing() || begin < trace.start) return;
  if (trace.events.size() >= recording.most_events) {
    ++trace.dropped;
    return;
  }
  if (this_thread.generation != recording.generation) {
    this_thread.generation = recording.generation;
    this_thread.index = trace.threads.size();
    trace.threads.push_back(this_thread.name);
  }
  trace.events.push_back({name, number, this_thread.index, begin, end});
}

}  // namespace towers
