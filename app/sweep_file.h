#pragma once
// The CSV file of a sweep: a header, then one row per measurement, added as it comes. A sweep that
// was interrupted, or is started again with longer lists, goes on with what is not there yet.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace towers::app {

// The cell for a value: text as it is, numbers as JSON writes them, nothing for null.
std::string csv_cell(const nlohmann::ordered_json& value);

class SweepFile {
 public:
  // columns: the names of a row's values, in order. An empty path is no file: it holds nothing and
  // takes every row. A last line without a line break was cut off in writing, and is removed.
  // Throws Error where the file cannot be read or written or has other columns.
  SweepFile(std::filesystem::path path, const std::vector<std::string>& columns);

  // Whether there is a row that agrees with `row` in these columns.
  bool holds(const nlohmann::ordered_json& row, const std::vector<std::string>& columns) const;
  // One write for all of them. Throws Error.
  void add(const std::vector<nlohmann::ordered_json>& rows);

 private:
  void append(const std::string& text) const;
  void take_line(const std::string& line);

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  std::vector<std::map<std::string, std::string>> rows_;  // cell by column
};

}  // namespace towers::app
