// Progress on a terminal and elsewhere.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "cli/console.h"
#include "cli/work_progress.h"
#include "tests/cli/child.h"
#include "tests/support.h"

using namespace towers::cli;
using namespace towers::test;

namespace {

// Reports 1000 steps.
int report() {
  ::setenv("TERM", "xterm", 1);
  ProgressLine progress;
  for (int i = 1; i <= 1000; ++i) progress.update(std::to_string(i) + " of 1000", i / 1000.0);
  return 0;
}

const std::string erase = "\r\x1b[K";

}  // namespace

TEST_CASE("in a pipe progress is a plain line for every tenth") {
  const auto outcome = run_child(pipe_channel(), STDERR_FILENO, report);
  CHECK(outcome.code == 0);
  std::string expected = "1 of 1000\n";
  for (int i = 101; i <= 1000; i += 100) expected += std::to_string(i) + " of 1000\n";
  CHECK(outcome.text.starts_with(expected.substr(0, 20)));
  CHECK(outcome.text.find('\r') == std::string::npos);
  CHECK(outcome.text.ends_with("\n1000 of 1000\n"));
  const auto lines = std::count(outcome.text.begin(), outcome.text.end(), '\n');
  CHECK(lines >= 11);
  CHECK(lines <= 12);
}

TEST_CASE("on a terminal progress is one line, rewritten") {
  if (!terminals_exist()) return skip(kNoTerminals);
  const auto outcome = run_child(terminal_channel(), STDERR_FILENO, report);
  CHECK(outcome.text.starts_with("1 of 1000"));
  CHECK(outcome.text.ends_with(erase + "1000 of 1000\r\n"));
  CHECK(std::count(outcome.text.begin(), outcome.text.end(), '\n') == 1);
  // Not at each of the 1000 calls: a terminal may be slow.
  CHECK(std::count(outcome.text.begin(), outcome.text.end(), '\r') < 900);
}

TEST_CASE("a terminal that cannot rewrite gets plain lines") {
  if (!terminals_exist()) return skip(kNoTerminals);
  const auto outcome = run_child(terminal_channel(), STDERR_FILENO, [] {
    ::setenv("TERM", "dumb", 1);
    ProgressLine progress;
    progress.update("half", 0.5);
    progress.update("whole", 1);
    return 0;
  });
  CHECK(outcome.text == "half\r\nwhole\r\n");
}

TEST_CASE("other lines go above a progress line") {
  if (!terminals_exist()) return skip(kNoTerminals);
  const auto outcome = run_child(terminal_channel(), STDERR_FILENO, [] {
    ::setenv("TERM", "xterm", 1);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ProgressLine progress;
    progress.update("half", 0.5);
    log_info("noted");
    print_line("printed");
    progress.finish();
    print_line("after");
    return 0;
  });
  CHECK(outcome.text ==
        "half" + erase + "noted\r\nhalf" + erase + "printed\r\nhalf" + erase + "half\r\nafter\r\n");
}

TEST_CASE("a line longer than the terminal is cut where a character ends") {
  if (!terminals_exist()) return skip(kNoTerminals);
  const auto outcome = run_child(terminal_channel(), STDERR_FILENO, [] {
    ::setenv("TERM", "xterm", 1);
    ProgressLine progress;
    std::string text;
    for (int i = 0; i < 100; ++i) text += "\u00e9";
    progress.update(text, 0);
    ::_exit(0);
    return 0;
  });
  std::string expected;
  for (int i = 0; i < 39; ++i) expected += "\u00e9";
  CHECK(outcome.text == expected);
}

TEST_CASE("progress is not shown where info lines are not") {
  const auto outcome = run_child(pipe_channel(), STDERR_FILENO, [] {
    set_log_level("info", true);
    return report();
  });
  CHECK(outcome.text.empty());
}

TEST_CASE("a finished progress line can begin again, and nothing ends what did not begin") {
  const auto outcome = run_child(pipe_channel(), STDERR_FILENO, [] {
    ProgressLine progress;
    progress.finish();
    progress.update("a", 0.5);
    progress.finish();
    progress.finish();
    progress.update("b", 0.5);
    return 0;
  });
  CHECK(outcome.text == "a\nb\n");
}

TEST_CASE("the last text is shown even when it came too soon") {
  const auto outcome = run_child(pipe_channel(), STDERR_FILENO, [] {
    ProgressLine progress;
    progress.update("1 byte", -1);
    progress.update("2 bytes", -1);
    progress.update("3 bytes", -1);
    return 0;
  });
  CHECK(outcome.text == "1 byte\n3 bytes\n");
}

TEST_CASE("an erased line is gone from a terminal, and a pipe has what it had") {
  const auto erased = [] {
    ::setenv("TERM", "xterm", 1);
    ProgressLine progress;
    progress.update("half", 0.5);
    progress.erase();
    log_info("after");
    return 0;
  };
  CHECK(run_child(pipe_channel(), STDERR_FILENO, erased).text == "half\nafter\n");
  if (!terminals_exist()) return skip(kNoTerminals);
  CHECK(run_child(terminal_channel(), STDERR_FILENO, erased).text == "half" + erase + "after\r\n");
}

TEST_CASE("the time left follows from the rate since the start") {
  CHECK(progress_text("step", 0, 1200, 10000, 60) ==
        "step 1,200 of 10,000 (12.0%), 7 min 20 s left");
  // What was done before took none of the time.
  CHECK(progress_text("step", 1000, 2000, 4000, 10) == "step 2,000 of 4,000 (50.0%), 20.0 s left");
  CHECK(progress_text("step", 5, 5, 10, 3) == "step 5 of 10 (50.0%)");
  CHECK(progress_text("evaluated", 0, 10, 10, 3) == "evaluated 10 of 10 (100.0%)");
}

TEST_CASE("progress that is not asked for, or comes too soon, is not shown") {
  const auto outcome = run_child(pipe_channel(), STDERR_FILENO, [] {
    WorkProgress off("step", 0, 2, false), soon("step", 0, 2, true, 1e9), on("step", 0, 2, true);
    for (WorkProgress* each : {&off, &soon, &on}) each->update(2);
    return 0;
  });
  CHECK(outcome.text == "step 2 of 2 (100.0%)\n");
}
