#pragma once
// Runs a piece of a test without root's rights, which pass over permissions and limits.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

namespace towers::test {

// Calls `body` in a child process, as an ordinary user, and returns what() of what it threw; ""
// when it threw nothing.
inline std::string error_without_rights(const std::function<void()>& body) {
  constexpr uid_t kNobody = 65534;
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    std::string error;
    try {
      if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0))
        throw std::runtime_error("cannot give up root's rights");
      body();
    } catch (const std::exception& e) {
      error = e.what();
    }
    const bool written = ::write(ends[1], error.data(), error.size()) >= 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string error;
  std::array<char, 1024> buffer{};
  for (ssize_t got; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
    error.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0)
    throw std::runtime_error("the child ended with status " + std::to_string(status));
  return error;
}

}  // namespace towers::test
