#pragma once
// Runs a piece of code in a child process whose standard streams the test holds.

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

namespace towers::test {

// A pair of connected files: what is written to `inner` is read from `outer`.
struct Channel {
  int outer = -1, inner = -1;
};

inline Channel pipe_channel() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  return {ends[0], ends[1]};
}

// A bare root folder may have no pseudo-terminals.
inline bool terminals_exist() {
  Channel channel;
  if (::openpty(&channel.outer, &channel.inner, nullptr, nullptr, nullptr) != 0) return false;
  ::close(channel.outer);
  ::close(channel.inner);
  return true;
}
constexpr const char* kNoTerminals = "no pseudo-terminals here; is /dev/pts mounted?";

// A terminal of 40 columns, as xterm would be.
inline Channel terminal_channel() {
  Channel channel;
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 40;
  REQUIRE(::openpty(&channel.outer, &channel.inner, nullptr, nullptr, &size) == 0);
  return channel;
}

inline std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count <= 0) return text;  // a terminal ends with an error, EIO
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

struct Outcome {
  std::string text;  // what came out of the channel
  int code = -1;     // exit code; 128 + n for signal n
};

// body: its value is the exit code; `stream` (1 or 2) is the channel's inner end while it runs.
inline Outcome run_child(Channel channel, int stream, const std::function<int()>& body) {
  std::cout.flush();
  std::fflush(nullptr);  // or the child would write this process's buffers again
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(channel.outer);
    ::dup2(channel.inner, stream);
    ::close(channel.inner);
    int code = 99;
    try {
      code = body();
    } catch (...) {
      code = 98;
    }
    std::exit(code);  // and not _exit, so that coverage is counted
  }
  ::close(channel.inner);
  Outcome outcome;
  outcome.text = read_all(channel.outer);
  ::close(channel.outer);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace towers::test
