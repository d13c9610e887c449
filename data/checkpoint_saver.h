#pragma once
// Saving in the background: the training loop hands over a copy and goes on.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/checkpoint.h"

namespace towers::data {

// Writes DIR/model.ckpt-STEP, then the state file that names it the latest, then deletes the oldest
// checkpoints beyond `max_to_keep`: its own and those in DIR that the state file listed on
// construction (of a run that is resumed). The state file lists a checkpoint until it is deleted,
// so that one which a killed process was about to delete is not forgotten. One whose save was
// killed before the state file named it has a later step than the latest: it counts as the oldest,
// to go first. One thread calls; a thread of the saver's own writes.
//
// A failed save costs a message, not the run: the state file goes on naming the last good
// checkpoint, the message comes out of the next call, and the next save tries afresh. To be called
// from one thread.
class CheckpointSaver {
 public:
  // max_to_keep 0: all. Throws Error when the folder's state file is damaged.
  CheckpointSaver(const std::filesystem::path& dir, int max_to_keep);
  ~CheckpointSaver();  // waits for a running save; its error is lost, so call wait() first
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Copies the tensors into a buffer that is kept between saves, and returns; waits first when the
  // last save is still running. Returns the one-line message of an earlier save that failed and was
  // not reported yet, or an empty string.
  std::string save(std::int64_t step, std::span<const Tensor> tensors);
  // Waits for the running save. Returns as `save` does; after it `last_failed` is settled.
  std::string wait();

  bool last_failed() const;              // of the saves that have ended, the last one failed
  std::filesystem::path latest() const;  // prefix of the last good checkpoint; empty: none

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// "DIR/model.ckpt-STEP"
std::filesystem::path checkpoint_prefix(const std::filesystem::path& dir, std::int64_t step);
// The STEP behind the last "-" of such a name, or of another program's; none where no number is.
std::optional<std::int64_t> step_in_name(const std::filesystem::path& prefix);

}  // namespace towers::data
