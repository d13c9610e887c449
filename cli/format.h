#pragma once
// Numbers, times and tables as text. Nothing here prints.

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

// Two columns, aligned, for the start-up table and the final summary. Lines are joined by line
// breaks, with none at the end; so print_line prints it whole.
std::string table(const std::vector<std::pair<std::string, std::string>>& rows);

// A header and rows of as many cells, aligned. A column whose cells all begin with a digit, a sign
// or are empty is set to the right. Shorter rows are filled up with empty cells.
std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows);

// "812 bytes", "1.5 GB" (powers of 1000).
std::string human_bytes(std::uint64_t bytes);

// "85 ms", "12.3 s", "2 min 03 s", "3 h 07 min", "2 d 04 h". Nothing below 0: "0 ms".
std::string human_duration(double seconds);

// `text` with '?' for each control character: names of files, members and tensors are anybody's,
// and must neither break a line nor steer a terminal.
std::string one_line(std::string text);

// In single quotes, for a line that can be pasted into a shell.
std::string shell_quoted(const std::string& text);

// "-12,345"
std::string with_thousands(std::int64_t number);

}  // namespace towers::cli
