#include "data/metrics_log.h"

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>

#include "core/error.h"
#include "data/run_folder.h"

namespace towers::data {
namespace {

struct Column {
  const char* name;
  double MetricsRow::*value;
  const char* format;
};
constexpr Column kColumns[] = {
    {"time", &MetricsRow::time, "%.6f"},
    {"loss", &MetricsRow::loss, "%.9g"},
    {"cross_entropy", &MetricsRow::cross_entropy, "%.9g"},
    {"learning_rate", &MetricsRow::learning_rate, "%.7g"},
    {"examples_per_sec", &MetricsRow::examples_per_sec, "%.2f"},
    {"sec_per_batch", &MetricsRow::sec_per_batch, "%.6g"},
    {"epoch", &MetricsRow::epoch, "%.6g"},
};

// Rows begin so, then comes the step's number.
constexpr std::string_view kJsonStart = "{\"step\":";
constexpr std::string_view kCsvStart = "step,";  // of the header

std::string csv_header() {
  std::string line = "step";
  for (const Column& column : kColumns) line += std::string(",") + column.name;
  return line + "\n";
}

std::string row_text(const MetricsRow& row, bool json) {
  std::string line = (json ? std::string(kJsonStart) : "") + std::to_string(row.step);
  for (const Column& column : kColumns) {
    char number[64];
    std::snprintf(number, sizeof number, column.format, row.*column.value);
    line += json ? ",\"" + std::string(column.name) + "\":" : std::string(",");
    line += number;
  }
  return line + (json ? "}\n" : "\n");
}

// The whole rows of `content` before `first_step`.
std::string rows_before(std::string_view content, bool json, std::int64_t first_step) {
  const std::string_view start = json ? kJsonStart : std::string_view();
  std::string kept;
  for (std::size_t end; (end = content.find('\n')) != std::string_view::npos;
       content.remove_prefix(end + 1)) {
    const std::string_view line = content.substr(0, end + 1);
    if (!line.starts_with(start)) continue;
    std::int64_t step = 0;
    const char* number = line.data() + start.size();
    const auto [behind, error] = std::from_chars(number, line.data() + line.size(), step);
    if (error == std::errc() && *behind == ',' && step < first_step) kept += line;
  }
  return kept;
}

bool is_json(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".csv") return false;
  if (ending == ".jsonl" || ending == ".json") return true;
  throw UsageError("--metrics_log=" + path.string() +
                   " ends in neither .csv nor .jsonl, which tells the format");
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& path) : path_(path), json_(is_json(path)) {
  const std::filesystem::path folder = path.parent_path();
  require_writable_folder(folder.empty() ? "." : folder);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  const std::string content = read_whole_file(path);
  if (!content.empty() && !content.starts_with(json_ ? kJsonStart : kCsvStart))
    throw Error("--metrics_log=" + path.string() +
                " exists and is not a metrics log, so it was not touched; give another name");
  has_rows_ = !rows_before(content, json_, std::numeric_limits<std::int64_t>::max()).empty();
}

void MetricsLog::begin(std::int64_t first_step) {
  std::error_code error;
  std::string kept = json_ ? "" : csv_header();
  if (std::filesystem::exists(path_, error))
    kept += rows_before(read_whole_file(path_), json_, first_step);
  write_file_atomically(path_, kept);
  file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file_.get() < 0) throw_file_error("write", path_, errno);
}

void MetricsLog::add(const MetricsRow& row) {
  const std::string text = row_text(row, json_);
  write_all(file_, path_, std::as_bytes(std::span(text)));
}

}  // namespace towers::data
