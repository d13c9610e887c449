#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "cli/console.h"
#include "cli/screen.h"

namespace towers::cli {
namespace {

std::mutex& mutex() {
  static std::mutex instance;
  return instance;
}

// Under mutex().
std::string& progress() {
  static std::string text;
  return text;
}

// stderr has no errors that anybody could be told of.
void write_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

// What fits on one line: a longer one could not be rewritten. Cut between code points of UTF-8.
std::string_view fitting(std::string_view text) {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return text;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins && ++columns >= size.ws_col) return text.substr(0, i);
  }
  return text;
}

constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

Screen::Screen() : lock_(mutex()) {
  if (!progress().empty()) write_stderr(kEraseLine);
}

Screen::~Screen() {
  if (!progress().empty()) write_stderr(fitting(progress()));
}

void Screen::set_progress(const std::string& text) {
  progress() = text;
}

bool stderr_is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && (kind == nullptr || std::string_view(kind) != "dumb");
}

ProgressLine::ProgressLine() : terminal_(stderr_is_terminal()) {}
ProgressLine::~ProgressLine() {
  finish();
}

bool ProgressLine::due(double fraction, std::chrono::steady_clock::time_point now) const {
  using namespace std::chrono_literals;
  if (!open_) return true;
  if (terminal_) return now - last_ >= 100ms;
  return fraction - last_fraction_ >= 0.1 || now - last_ >= 10s;
}

void ProgressLine::update(const std::string& text, double fraction) {
  if (!info_shown()) return;
  const auto now = std::chrono::steady_clock::now();
  text_ = text;
  pending_ = true;
  if (due(fraction, now)) show(fraction, now);
}

void ProgressLine::show(double fraction, std::chrono::steady_clock::time_point now) {
  Screen screen;
  if (terminal_) {
    screen.set_progress(text_);
  } else {
    write_stderr(text_ + "\n");
  }
  open_ = true;
  pending_ = false;
  last_fraction_ = fraction;
  last_ = now;
}

void ProgressLine::finish() {
  if (!open_) return;
  if (pending_) show(last_fraction_, last_);
  if (terminal_) {
    Screen screen;
    screen.set_progress("");
    write_stderr(text_ + "\n");
  }
  open_ = false;
}

void ProgressLine::erase() {
  if (open_ && terminal_) {
    Screen screen;
    screen.set_progress("");
  }
  open_ = false;
  pending_ = false;
}

}  // namespace towers::cli
