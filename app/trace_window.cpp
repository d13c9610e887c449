#include "app/trace_window.h"

#include <exception>
#include <string>
#include <utility>

#include "cli/console.h"
#include "data/trace_file.h"

namespace towers::app {
namespace {

// 40 MB of memory and about 100 MB of file.
constexpr std::size_t kMostEvents = 1000000;

}  // namespace

TraceWindow::TraceWindow(const std::filesystem::path& path, std::int64_t steps)
    : path_(path), steps_left_(path.empty() ? 0 : steps) {
  if (steps_left_ == 0) return;
  name_trace_thread("training loop");
  start_trace(kMostEvents);
  step_begin_ = TraceClock::now();
  add_trace_event("begin", -1, step_begin_, step_begin_);  // so that this thread is shown first
}

TraceWindow::~TraceWindow() {
  if (steps_left_ > 0) write();
}

void TraceWindow::step_done(std::int64_t step, TraceClock::time_point end) {
  if (steps_left_ == 0) return;
  add_trace_event("step", step, step_begin_, end);
  step_begin_ = end;
  if (--steps_left_ == 0) write();
}

void TraceWindow::write() noexcept {
  try {
    Trace trace = stop_trace();
    const std::size_t events = trace.events.size();
    const auto dropped = trace.dropped;
    data::write_trace_file(path_, std::move(trace));
    cli::log_info(
        "timeline of " + std::to_string(events) + " events: " + path_.string() +
        " (open it in ui.perfetto.dev)" +
        (dropped == 0 ? std::string()
                      : "; " + std::to_string(dropped) + " more did not fit: lower --trace_steps"));
  } catch (const std::exception& error) {
    cli::log_warning(error.what());
  }
}

}  // namespace towers::app
