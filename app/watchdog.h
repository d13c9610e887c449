#pragma once
// Says what a run waits for that has not moved for a while. It only watches: the run goes on.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "app/step_clock.h"

namespace towers::app {

class Watchdog {
 public:
  using Say = std::function<void(const std::string& line)>;

  // Looks at `clock`, which must outlive it, from a thread of its own, until destruction. After
  // `seconds` (0: never) without a lap `warn` gets a line that names what the run waits for, and
  // again after twice, four times ... that time; `inform` gets one when it goes on.
  // others: who Awaited::others are; alone, nobody but the towers.
  Watchdog(const StepClock& clock, double seconds, Say warn, Say inform,
           const char* others = "the towers");
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  const StepClock& clock_;
  const std::chrono::duration<double> limit_;
  const Say warn_, inform_;
  const char* const others_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace towers::app
