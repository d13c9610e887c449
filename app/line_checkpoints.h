#pragma once
// What the chief of the linear regression keeps on disk: checkpoints that TensorFlow reads, and the
// `cost` summary.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "app/line.h"
#include "app/repeated_error.h"
#include "data/checkpoint_saver.h"
#include "data/event_file.h"
#include "data/folder_lock.h"

namespace towers::app {

struct SavedLine {
  std::filesystem::path checkpoint;
  std::int64_t step = 0;
  Line line{};
};
// The latest checkpoint of the folder. Nothing where there is none; Error when it is damaged or of
// another model.
std::optional<SavedLine> read_saved_line(const std::filesystem::path& dir);

class LineCheckpoints {
 public:
  // Makes the folder and locks it. Throws Error: it cannot be written, or another process saves
  // there.
  LineCheckpoints(const std::filesystem::path& dir, double seconds_between);

  // As read_saved_line, with what is being written.
  std::optional<SavedLine> latest();
  // Saves in the background. cost: that of the last step, if there was one.
  void save(std::int64_t step, const Line& line, std::optional<float> cost);
  bool due() const;
  // Waits for the last save. Throws Error when it failed.
  void finish();

 private:
  // Waits for the running save, and says how it ended where that is news.
  void await_save();

  std::filesystem::path dir_;
  data::FolderLock lock_;
  data::CheckpointSaver saver_;
  RepeatedError save_errors_, events_errors_;
  std::optional<data::EventFileWriter> events_;  // from the first summary on
  std::chrono::duration<double> between_;
  std::chrono::steady_clock::time_point saved_;
};

}  // namespace towers::app
