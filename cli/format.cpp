#include "cli/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace towers::cli {
namespace {

template <class... Values>
std::string formatted(const char* pattern, Values... values) {
  std::array<char, 1024> buffer{};  // three numbers of up to 312 digits
  const int size = std::snprintf(buffer.data(), buffer.size(), pattern, values...);
  return {buffer.data(), std::min(static_cast<std::size_t>(size), buffer.size() - 1)};
}

// Columns on a screen, taking every code point of UTF-8 for one.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

bool looks_numeric(const std::string& cell) {
  return cell.empty() || (cell[0] >= '0' && cell[0] <= '9') || cell[0] == '-' || cell[0] == '+';
}

using Row = std::vector<std::string>;

std::string laid_out(const std::vector<Row>& rows, const std::vector<bool>& to_the_right) {
  std::vector<std::size_t> widths(to_the_right.size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (to_the_right[i] ? blanks + row[i] : row[i] + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

}  // namespace

std::string timestamp(std::chrono::system_clock::time_point when) {
  using namespace std::chrono;
  const auto since_epoch = floor<microseconds>(when.time_since_epoch());
  const auto whole = floor<seconds>(since_epoch);
  const std::time_t second = static_cast<std::time_t>(whole.count());
  std::tm local{};
  ::localtime_r(&second, &local);
  return formatted("%04d-%02d-%02d %02d:%02d:%02d.%06d", local.tm_year + 1900, local.tm_mon + 1,
                   local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                   static_cast<int>((since_epoch - whole).count()));
}

std::string step_line(std::chrono::system_clock::time_point when, std::int64_t step, double loss,
                      double examples_per_second, double seconds_per_batch) {
  return timestamp(when) + ": step " + std::to_string(step) +
         formatted(", loss = %.2f (%.1f examples/sec; %.3f sec/batch)", loss, examples_per_second,
                   seconds_per_batch);
}

std::string precision_line(std::chrono::system_clock::time_point when, double precision) {
  return timestamp(when) + formatted(": precision @ 1 = %.3f", precision);
}

std::string table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::vector<Row> cells;
  for (const auto& [name, value] : rows) cells.push_back({name, value});
  return laid_out(cells, {false, false});
}

std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<Row> cells{header};
  cells.insert(cells.end(), rows.begin(), rows.end());
  std::size_t columns = 0;
  for (const Row& row : cells) columns = std::max(columns, row.size());
  std::vector<bool> to_the_right(columns, !rows.empty());
  for (Row& row : cells) row.resize(columns);
  for (std::size_t r = 1; r < cells.size(); ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      if (!looks_numeric(cells[r][c])) to_the_right[c] = false;
    }
  }
  return laid_out(cells, to_the_right);
}

std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  static constexpr std::array<const char*, 6> units{"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  // 999.95 would be printed as 1000.0.
  while (value >= 999.95 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return formatted("%.1f %s", value, units[unit]);
}

std::string human_duration(double seconds) {
  if (std::isnan(seconds) || seconds > 1e12) return "for ever";
  seconds = std::max(seconds, 0.0);
  // Each limit is where the unit below would round up to a whole one above.
  if (seconds < 0.9995) return formatted("%.0f ms", seconds * 1e3);
  if (seconds < 59.95) return formatted("%.1f s", seconds);
  const auto whole = static_cast<long long>(seconds + 0.5);
  const auto minutes = (whole + 30) / 60;
  const auto hours = (whole + 1800) / 3600;
  if (whole < 3600) return formatted("%lld min %02lld s", whole / 60, whole % 60);
  if (minutes < 24 * 60) return formatted("%lld h %02lld min", minutes / 60, minutes % 60);
  return formatted("%lld d %02lld h", hours / 24, hours % 24);
}

std::string one_line(std::string text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string with_thousands(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 2 : 1;  // no comma before the first digit
  for (std::size_t i = digits.size(); i >= first + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

}  // namespace towers::cli
