#pragma once
// The terminal as a shared thing: whoever writes a line holds a Screen.

#include <mutex>
#include <string>

namespace towers::cli {

// Holds the lock of stdout and stderr, and takes a progress line off the screen for as long.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // The line that is rewritten in place at the bottom of a terminal; empty: none.
  void set_progress(const std::string& text);

 private:
  std::lock_guard<std::mutex> lock_;
};

// Whether stderr is a terminal on which a line can be rewritten.
bool stderr_is_terminal();

// Whether info lines are shown.
bool info_shown();

}  // namespace towers::cli
