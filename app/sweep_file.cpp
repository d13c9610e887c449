#include "app/sweep_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "app/csv_text.h"
#include "core/error.h"
#include "data/file.h"

namespace towers::app {

std::string csv_cell(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

SweepFile::SweepFile(std::filesystem::path path, const std::vector<std::string>& columns)
    : path_(std::move(path)), columns_(columns) {
  if (path_.empty()) return;
  if (path_ == "-")
    throw UsageError(
        "--csv=-: a sweep goes on in its file, so it needs one; give its name, or "
        "--json to have the rows on stdout");
  std::string text;
  if (std::filesystem::exists(path_)) text = data::read_whole_file(path_);
  const std::size_t whole = text.rfind('\n') + 1;  // 0 where there is no line break
  const std::string header = csv_line(columns_);
  if (!text.empty() && (whole == 0 || text.compare(0, text.find('\n'), header) != 0))
    throw Error("--csv=" + path_.string() +
                ": its columns are not those of this version's sweeps; give another file");
  if (whole != text.size()) std::filesystem::resize_file(path_, whole);
  // Refuses a file that cannot be written before anything is measured.
  append(text.empty() ? header + "\n" : "");
  for (std::size_t begin = header.size() + 1; begin < whole;) {
    const std::size_t end = text.find('\n', begin);
    take_line(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

void SweepFile::take_line(const std::string& line) {
  const std::vector<std::string> cells = split_csv_line(line);
  auto& row = rows_.emplace_back();
  for (std::size_t i = 0; i < std::min(cells.size(), columns_.size()); ++i)
    row[columns_[i]] = cells[i];
}

bool SweepFile::holds(const nlohmann::ordered_json& row,
                      const std::vector<std::string>& columns) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const auto& known) {
    return std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
      const auto cell = known.find(column);
      return cell != known.end() && cell->second == csv_cell(row.at(column));
    });
  });
}

void SweepFile::add(const std::vector<nlohmann::ordered_json>& rows) {
  if (path_.empty()) return;
  std::string text;
  for (const auto& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& column : columns_) cells.push_back(csv_cell(row.at(column)));
    const std::string line = csv_line(cells);
    take_line(line);
    text += line + "\n";
  }
  append(text);
}

void SweepFile::append(const std::string& text) const {
  // Opened each time: several processes may add rows to one file.
  const data::FileDescriptor file(
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (file.get() < 0) data::throw_file_error("write", path_, errno);
  data::write_all(file, path_, std::as_bytes(std::span(text)));
}

}  // namespace towers::app
