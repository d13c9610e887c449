// stdout and the log, with every kind of reader behind them.
#include "cli/console.h"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/cli/child.h"
#include "tests/support.h"

using namespace towers::cli;
using namespace towers::test;

TEST_CASE("a line is on its way when print_line returns") {
  const auto outcome = run_child(pipe_channel(), STDOUT_FILENO, [] {
    prepare_standard_streams();
    print_line("one");
    print_line("");
    print_line("two\nthree");
    ::kill(::getpid(), SIGKILL);  // nothing can be flushed after this
    return 0;
  });
  CHECK(outcome.text == "one\n\ntwo\nthree\n");
  CHECK(outcome.code == 128 + SIGKILL);
}

TEST_CASE("a reader that goes away ends the printing quietly") {
  const auto outcome = run_child(pipe_channel(), STDERR_FILENO, [] {
    prepare_standard_streams();
    const Channel channel = pipe_channel();
    ::dup2(channel.inner, STDOUT_FILENO);
    print_line("read");
    if (stdout_closed()) return 1;
    ::close(channel.outer);
    print_line("not read");
    ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO);
    print_line("not even tried");
    return stdout_closed() ? 0 : 2;
  });
  CHECK(outcome.code == 0);
  CHECK(outcome.text.empty());
}

TEST_CASE("a full disk behind stdout is an error") {
  const auto outcome = run_child(pipe_channel(), STDERR_FILENO, [] {
    prepare_standard_streams();
    ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO);
    try {
      print_line("lost");
    } catch (const towers::Error& error) {
      log_info(error.what());
      return stdout_closed() ? 1 : 0;
    }
    return 2;
  });
  CHECK(outcome.code == 0);
  CHECK(outcome.text ==
        "cannot write to standard output: No space left on device; send it somewhere else\n");
}

TEST_CASE("standard streams that were closed are not given to other files") {
  const auto outcome = run_child(pipe_channel(), STDERR_FILENO, [] {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    prepare_standard_streams();
    print_line("to nobody");
    return ::open("/dev/null", O_RDONLY) > STDERR_FILENO ? 0 : 1;
  });
  CHECK(outcome.code == 0);
}

TEST_CASE("a pipe in non-blocking mode gets every byte") {
  const auto outcome = run_child(pipe_channel(), STDERR_FILENO, [] {
    prepare_standard_streams();
    const Channel channel = pipe_channel();
    ::fcntl(channel.inner, F_SETFL, O_NONBLOCK);
    ::dup2(channel.inner, STDOUT_FILENO);
    ::close(channel.inner);
    std::string read;
    std::thread reader([&] {
      // Time for the writer to fill the pipe and find no room; without that the test only says
      // less.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      read = read_all(channel.outer);
    });
    print_line(std::string(1000000, 'x'));
    ::close(STDOUT_FILENO);
    reader.join();
    return read.size() == 1000001 ? 0 : 1;
  });
  CHECK(outcome.code == 0);
}

TEST_CASE("lines of several threads do not mix") {
  const auto outcome = run_child(pipe_channel(), STDOUT_FILENO, [] {
    prepare_standard_streams();
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    std::vector<std::thread> threads;
    for (char name = 'a'; name < 'd'; ++name) {
      threads.emplace_back([name] {
        for (int i = 0; i < 50; ++i) {
          print_line(std::string(5000, name));
          log_info(std::string(5000, name));
        }
      });
    }
    for (auto& thread : threads) thread.join();
    return 0;
  });
  CHECK(outcome.code == 0);
  std::istringstream lines(outcome.text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    if (line != std::string(5000, line.front())) FAIL("mixed: " << line);
  }
  CHECK(count == 300);
}

TEST_CASE("log lines are plain, with the level in front of all but info") {
  const auto log_all = [](const char* level, bool quiet) {
    return run_child(pipe_channel(), STDERR_FILENO,
                     [level, quiet] {
                       set_log_level(level, quiet);
                       log_debug("d {}");
                       log_info("i {0}");
                       log_warning("w %s");
                       log_error("e");
                       return 0;
                     })
        .text;
  };
  const std::string errors = "towers: error: e\n";
  const std::string warnings = "towers: warning: w %s\n" + errors;
  CHECK(log_all("debug", false) == "towers: debug: d {}\ni {0}\n" + warnings);
  CHECK(log_all("info", false) == "i {0}\n" + warnings);
  CHECK(log_all("warning", false) == warnings);
  CHECK(log_all("error", false) == errors);
  CHECK(log_all("off", false).empty());
  CHECK(log_all("debug", true) == warnings);
  CHECK(log_all("error", true) == errors);
  CHECK(run_child(pipe_channel(), STDERR_FILENO, [] {
          set_log_level("loud", false);
          return 0;
        }).code == 98);
}

TEST_CASE("warnings are coloured on a terminal alone, and not with NO_COLOR") {
  const auto warn = [](Channel channel, const char* no_color) {
    return run_child(channel, STDERR_FILENO,
                     [no_color] {
                       ::setenv("TERM", "xterm", 1);
                       ::unsetenv("NO_COLOR");
                       if (no_color != nullptr) ::setenv("NO_COLOR", no_color, 1);
                       log_info("i");
                       log_warning("w");
                       return 0;
                     })
        .text;
  };
  CHECK(warn(pipe_channel(), nullptr) == "i\ntowers: warning: w\n");
  if (!terminals_exist()) return skip(kNoTerminals);
  CHECK(warn(terminal_channel(), nullptr).find("\x1b[") != std::string::npos);
  CHECK(warn(terminal_channel(), nullptr).starts_with("i\r\n"));
  CHECK(warn(terminal_channel(), "").find("\x1b[") != std::string::npos);
  CHECK(warn(terminal_channel(), "1") == "i\r\ntowers: warning: w\r\n");
}

TEST_CASE("a log that nobody reads, or on a full disk, stops nothing") {
  const auto outcome = run_child(pipe_channel(), STDOUT_FILENO, [] {
    prepare_standard_streams();
    const Channel channel = pipe_channel();
    ::dup2(channel.inner, STDERR_FILENO);
    ::close(channel.outer);
    log_warning("lost");
    ::dup2(::open("/dev/full", O_WRONLY), STDERR_FILENO);
    log_warning("lost");
    print_line("still here");
    return 0;
  });
  CHECK(outcome.code == 0);
  CHECK(outcome.text == "still here\n");
}
