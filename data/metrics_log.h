#pragma once
// A training run's numbers as a table, one row per display: for a spreadsheet, pandas or jq.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/file.h"

namespace towers::data {

// The columns, in this order; a later version may add some behind them. Times in seconds.
struct MetricsRow {
  std::int64_t step = 0;
  double time = 0;           // since 1970
  double loss = 0;           // total, mean over towers
  double cross_entropy = 0;  // the part of it that is not weight decay
  double learning_rate = 0;
  double examples_per_sec = 0;  // of all towers, since the last row
  double sec_per_batch = 0;     // per tower
  double epoch = 0;             // passes over the training set, this step included
};

// CSV with a header (FILE.csv), or JSON lines with the columns as keys (FILE.jsonl, FILE.json).
class MetricsLog {
 public:
  // Checks, and changes nothing: a name with another ending is a UsageError; a folder that cannot
  // be written, or a file there that is no metrics log, an Error.
  explicit MetricsLog(const std::filesystem::path& path);

  bool has_rows() const { return has_rows_; }  // before begin()

  // Keeps the rows of the steps before `first_step`: none for a new run; for a resumed one those
  // that it does not make again.
  void begin(std::int64_t first_step);
  // Appends; a reader sees whole rows. Throws Error with path and reason.
  void add(const MetricsRow& row);

 private:
  std::filesystem::path path_;
  bool json_;
  bool has_rows_ = false;
  FileDescriptor file_;
};

}  // namespace towers::data
