#pragma once
// Lines of CSV as RFC 4180 has them, without the line break.

#include <string>
#include <vector>

namespace towers::app {

// A cell, in quotes where it holds a comma, a quote or a line break.
std::string csv_quoted(const std::string& cell);
// Such cells, with commas between them.
std::string csv_line(const std::vector<std::string>& cells);
// The cells of a line; none of them holds a line break.
std::vector<std::string> split_csv_line(const std::string& line);

}  // namespace towers::app
