#include "cli/console.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "cli/screen.h"
#include "core/error.h"

namespace towers::cli {
namespace {

std::atomic<bool> reader_gone{false};

// 0, or the error that stopped it. A pipe that is in non-blocking mode (its other users may have
// set that) is waited for.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd ready{file, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

void prepare_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    // The lowest free number is given out, so this one if it is free.
    if (::fcntl(file, F_GETFD) == -1)
      ::open("/dev/null", file == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  }
}

void print_line(const std::string& line) {
  if (reader_gone) return;
  Screen screen;
  const int error = write_all(STDOUT_FILENO, line + "\n");
  if (error == 0) return;
  if (error == EPIPE) {
    reader_gone = true;
    return;
  }
  throw Error(std::string("cannot write to standard output: ") + std::strerror(error) +
              "; send it somewhere else");
}

bool stdout_closed() {
  return reader_gone;
}

}  // namespace towers::cli
