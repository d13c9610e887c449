// What is said of a run that does not move.

#include <catch2/catch.hpp>

#include <condition_variable>
#include <mutex>
#include <optional>

#include "app/watchdog.h"

using namespace towers::app;

namespace {

// Lines as they come from the watchdog's thread.
class Lines {
 public:
  Watchdog::Say say() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
      changed_.notify_all();
    };
  }
  // The n-th line, from 0; waits for it.
  std::string line(std::size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lines_.size() > n; });
    return lines_[n];
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return lines_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

}  // namespace

TEST_CASE("a run that waits is told what for, again after a while, and when it goes on") {
  struct Case {
    Phase ended;
    std::optional<Awaited> next;
    const char* awaited;
  };
  for (const Case& c :
       {Case{Phase::saving, {}, "waiting for input"},
        Case{Phase::input, {}, "waiting for the towers"},
        Case{Phase::compute, {}, "waiting for the servers"},
        Case{Phase::averaging, {}, "waiting for the towers"},
        Case{Phase::update, {}, "waiting for the servers"},
        Case{Phase::averaging, Awaited::output, "waiting for whoever takes its lines"},
        Case{Phase::summaries, {}, "waiting for the evaluation"},
        Case{Phase::summaries, Awaited::others, "waiting for the servers"},
        Case{Phase::averaging, Awaited::disk, "waiting for the disk"},
        Case{Phase::evaluation, {}, "waiting for the disk"}}) {
    Lines warnings, news;
    StepClock clock;
    if (c.next)
      clock.lap(c.ended, *c.next);
    else
      clock.lap(c.ended);
    const Watchdog watchdog(clock, 0.01, warnings.say(), news.say(), "the servers");
    CHECK_THAT(warnings.line(0),
               Catch::StartsWith("nothing has moved for ") && Catch::Contains(c.awaited));
    CHECK_THAT(warnings.line(1), Catch::Contains(c.awaited));
    CHECK(news.empty());
    clock.lap(Phase::input);
    CHECK_THAT(news.line(0), Catch::StartsWith("going on after a standstill of "));
  }
}

TEST_CASE("a run that ends before the next look after a standstill is told that it went on") {
  Lines warnings, news;
  StepClock clock;
  {
    const Watchdog watchdog(clock, 0.4, warnings.say(), news.say());
    warnings.line(0);
    clock.lap(Phase::input);  // the next look is 0.1 s away
  }
  CHECK_FALSE(news.empty());
}

TEST_CASE("a watchdog of 0 seconds says nothing, and one of many ends at once") {
  Lines lines;
  StepClock clock;
  { const Watchdog off(clock, 0, lines.say(), lines.say()); }
  { const Watchdog patient(clock, 1e9, lines.say(), lines.say()); }
  CHECK(lines.empty());
}
