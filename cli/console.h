#pragma once
// What a person or a script reads: step lines, listings, log lines, progress. stdout carries what
// the command is for, flushed by line; everything else goes to stderr. All functions may be called
// from any thread; lines never mix.

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/format.h"

namespace towers::cli {

// Call once, first thing in main: a reader that goes away no longer kills the process (SIGPIPE is
// ignored), and a standard stream that the caller closed becomes /dev/null, so that no file opened
// later gets its number.
void prepare_standard_streams();

// Prints a line on stdout and flushes. After a closed stdout (a reader that went away) it does
// nothing; any other failure, such as a full disk, is an Error.
void print_line(const std::string& line);

// True once print_line has found that nobody reads stdout any more: end quietly.
bool stdout_closed();

// Log lines on stderr. Info lines are printed as they are, the others behind "towers: warning: "
// and so on, coloured on a terminal unless NO_COLOR is set. level: debug, info, warning, error, off
// (any other is std::invalid_argument); quiet: warnings and errors alone.
void set_log_level(const std::string& level, bool quiet);
void log_debug(const std::string& line);
void log_info(const std::string& line);
void log_warning(const std::string& line);
void log_error(const std::string& line);

// A line about something under way, rewritten in place on a terminal (stderr), where the lines of
// print_line and log_* go above it. Elsewhere a plain line at first, then every 10 % or 10 s. One
// at a time; not shown where info lines are not.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // as finish()
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // text: the whole line, for example ">> Downloading cifar-10-binary.tar.gz 12.3%".
  // fraction: done so far, 0 to 1; below 0 where the whole is not known.
  void update(const std::string& text, double fraction);

  // Ends the line with the last text given. update() begins another.
  void finish();
  // Ends it without a trace on a terminal.
  void erase();

 private:
  bool due(double fraction, std::chrono::steady_clock::time_point now) const;
  void show(double fraction, std::chrono::steady_clock::time_point now);

  bool terminal_ = false;
  bool open_ = false;     // something was shown since the last finish()
  bool pending_ = false;  // text_ was not shown yet
  std::string text_;
  double last_fraction_ = 0;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace towers::cli
