#pragma once
// SIGINT, SIGTERM, SIGHUP (a closed terminal) and SIGUSR1 ask a loop to save and end.

#include <chrono>

namespace towers::app {

// Call once, first thing in main: a write beyond the file size limit (ulimit -f) fails with a
// message instead of killing the process, and a SIGUSR1 before the loop is remembered for it. The
// other signals end the process at once until a SignalGuard takes them over.
void prepare_signals();

// Takes the signals over for its lifetime. A second one, a second or more after the first, ends the
// process at once (SIGUSR1 counts as neither): files are written whole or not at all, so the
// previous checkpoint stays.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The signal that asked for the end, or 0.
  static int received();
  // Sleeps; returns early when a signal arrives.
  static void sleep_for(std::chrono::duration<double> time);
};

// 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP, 0 for SIGUSR1 and for no signal.
int exit_code_of(int signal);

}  // namespace towers::app
