#pragma once
// Runs the towers binary as a person or a script does, and sees what they see.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace towers::test {

struct ProcessOptions {
  std::string program{};                      // found on the PATH, and run instead of the binary
  std::vector<std::string> environment{};     // "NAME=value", added to the tests' own
  std::optional<uid_t> user{};                // run as this user (needs root)
  std::optional<long> file_size_limit{};      // RLIMIT_FSIZE in bytes
  std::optional<long> address_space_limit{};  // RLIMIT_AS in bytes
  bool close_stdout_reader = false;           // as `| head -0` does
  double limit_seconds = 240;                 // killed after that; far beyond a slow machine
};

struct ProcessResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  bool by_signal = false;
  std::string out, err;
};

// A running process; ended (SIGKILL) on destruction if it still runs.
class Process {
 public:
  explicit Process(const std::vector<std::string>& args, const ProcessOptions& options = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number);
  // Waits until `text` has appeared on stdout (or stderr); false when the process ended without it.
  bool wait_for_output(const std::string& text);
  ProcessResult wait();

 private:
  bool pump(int timeout_ms);  // false when both streams have ended
  bool out_of_time() const;

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  double deadline_ = 0;
  ProcessResult result_;
  bool waited_ = false;
};

// Runs `towers ARGS...` to its end.
ProcessResult run_towers(const std::vector<std::string>& args, const ProcessOptions& options = {});

}  // namespace towers::test
