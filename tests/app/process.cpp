#include "tests/app/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace towers::test {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void become(const std::vector<std::string>& args, const ProcessOptions& options) {
  for (const std::string& variable : options.environment) ::putenv(::strdup(variable.c_str()));
  const auto set_limit = [](__rlimit_resource resource, const std::optional<long>& bytes) {
    if (!bytes) return;
    const rlimit limit{static_cast<rlim_t>(*bytes), static_cast<rlim_t>(*bytes)};
    ::setrlimit(resource, &limit);
  };
  set_limit(RLIMIT_FSIZE, options.file_size_limit);
  set_limit(RLIMIT_AS, options.address_space_limit);
  // Opened before, so that the user need not be able to enter the build's folders (/root, say).
  const int binary = ::open(TOWERS_BINARY, O_RDONLY | O_CLOEXEC);
  if (options.user && (::setgid(*options.user) != 0 || ::setuid(*options.user) != 0)) ::_exit(99);
  std::vector<char*> argv;
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  if (!options.program.empty()) {
    argv[0] = const_cast<char*>(options.program.c_str());
    ::execvp(argv[0], argv.data());
    ::_exit(97);
  }
  ::fexecve(binary, argv.data(), environ);
  ::_exit(98);
}

void read_some(int& fd, std::string& text) {
  char buffer[4096];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n > 0) {
    text.append(buffer, static_cast<std::size_t>(n));
  } else {
    ::close(fd);
    fd = -1;
  }
}

}  // namespace

Process::Process(const std::vector<std::string>& args, const ProcessOptions& options) {
  std::vector<std::string> all = {TOWERS_BINARY};
  all.insert(all.end(), args.begin(), args.end());
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
    throw std::runtime_error("pipe2 failed");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    become(all, options);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
  if (options.close_stdout_reader) {
    ::close(out_);
    out_ = -1;
  }
  deadline_ = now() + options.limit_seconds;
}

Process::~Process() {
  if (!waited_) {
    ::kill(pid_, SIGKILL);
    wait();
  }
}

void Process::signal(int number) {
  ::kill(pid_, number);
}

bool Process::out_of_time() const {
  return now() > deadline_;
}

bool Process::pump(int timeout_ms) {
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  ::poll(fds, 2, timeout_ms);
  if (out_ >= 0 && fds[0].revents != 0) read_some(out_, result_.out);
  if (err_ >= 0 && fds[1].revents != 0) read_some(err_, result_.err);
  if (out_of_time()) ::kill(pid_, SIGKILL);
  return out_ >= 0 || err_ >= 0;
}

bool Process::wait_for_output(const std::string& text) {
  const auto seen = [&] {
    return result_.out.find(text) != std::string::npos ||
           result_.err.find(text) != std::string::npos;
  };
  while (!seen() && pump(100)) {
  }
  return seen();
}

ProcessResult Process::wait() {
  while (pump(100)) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  waited_ = true;
  result_.by_signal = WIFSIGNALED(status);
  result_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result_;
}

ProcessResult run_towers(const std::vector<std::string>& args, const ProcessOptions& options) {
  return Process(args, options).wait();
}

}  // namespace towers::test
