#pragma once
// What a person or a script reads: step lines, tables, progress. stdout carries what the command is
// for, flushed by line; everything else goes to stderr.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace towers::cli {

// "2026-12-01 10:11:12.345678", local time.
std::string timestamp(std::chrono::system_clock::time_point when);

// "TIMESTAMP: step 20, loss = 4.62 (1834.5 examples/sec; 0.070 sec/batch)"
std::string step_line(std::chrono::system_clock::time_point when, std::int64_t step, double loss,
                      double examples_per_second, double seconds_per_batch);

// "TIMESTAMP: precision @ 1 = 0.862"
std::string precision_line(std::chrono::system_clock::time_point when, double precision);

// Two columns, aligned, for the start-up table and the final summary.
std::string table(const std::vector<std::pair<std::string, std::string>>& rows);

// "1.5 GB", "2 min 03 s", "12,345"
std::string human_bytes(std::uint64_t bytes);
std::string human_duration(double seconds);
std::string with_thousands(std::int64_t number);

// Prints a line on stdout and flushes. After a closed stdout (a reader that went away) it does nothing;
// any other failure is an Error.
void print_line(const std::string& line);

// Log lines on stderr (spdlog). Levels: debug, info, warning, error, off; quiet: errors and warnings alone.
void set_log_level(const std::string& level, bool quiet);
void log_info(const std::string& line);
void log_warning(const std::string& line);
void log_error(const std::string& line);

// One line rewritten in place on a terminal (stderr); elsewhere a plain line every 10 % or 10 s.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // ends the line
  // text: the whole line, for example ">> Downloading cifar-10-binary.tar.gz 12.3%".
  void update(const std::string& text, double fraction);
  void finish();

 private:
  bool terminal_ = false;
  bool open_ = false;
  double last_fraction_ = -1;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace towers::cli
