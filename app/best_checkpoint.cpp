#include "app/best_checkpoint.h"

#include <cstdio>
#include <fstream>
#include <utility>

#include "core/error.h"
#include "data/file.h"
#include "data/run_folder.h"

namespace towers::app {

BestCheckpoint::BestCheckpoint(const std::filesystem::path& train_dir)
    : dir_(train_dir / data::kBestFolder) {
  const std::string latest = data::read_checkpoint_state(dir_).latest.filename().string();
  std::ifstream lines(dir_ / data::kPrecisionFile);
  Kept line;
  while (!latest.empty() && lines >> line.name >> line.precision)
    if (line.name == latest) kept_ = line;
}

bool BestCheckpoint::is_better(double precision) {
  finish();
  return !kept_ || precision > kept_->precision;
}

void BestCheckpoint::save(std::int64_t step, double precision,
                          std::span<const data::Tensor> tensors) {
  try {
    begin(step, precision, tensors);
  } catch (const Error& error) {
    error_ = error.what();
    saving_.reset();
  }
}

void BestCheckpoint::begin(std::int64_t step, double precision,
                           std::span<const data::Tensor> tensors) {
  data::require_writable_folder(dir_);
  if (!saver_) saver_ = std::make_unique<data::CheckpointSaver>(dir_, 1);
  saving_ = Kept{prefix_of(step).filename().string(), precision};
  std::string text;
  for (const auto& each : {kept_, saving_}) {
    if (!each) continue;
    char number[32];
    std::snprintf(number, sizeof number, " %.6f\n", each->precision);
    text += each->name + number;
  }
  data::write_file_atomically(dir_ / data::kPrecisionFile, text);
  saver_->save(step, tensors);
}

std::string BestCheckpoint::finish() {
  if (!saver_ || !saving_) return error_;
  error_ = saver_->wait();
  if (!saver_->last_failed()) kept_ = saving_;
  saving_.reset();
  return error_;
}

std::filesystem::path BestCheckpoint::prefix_of(std::int64_t step) const {
  return data::checkpoint_prefix(dir_, step);
}

}  // namespace towers::app
