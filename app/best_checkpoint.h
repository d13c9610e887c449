#pragma once
// train_dir/best: the checkpoint with the best precision of the evaluations during a run
// (--eval_every), out of reach of --max_to_keep.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/checkpoint_saver.h"

namespace towers::app {

// The folder is one that eval, predict and export take: a checkpoint and its state file. Beside it
// stands precision.txt, a line "model.ckpt-STEP PRECISION" for the checkpoint that is there; it is
// written before the state file names a new one, with both lines, so that whenever the run is
// killed the precision of the one that is named is known. One thread calls.
class BestCheckpoint {
 public:
  // Goes on from what a run that is resumed has kept. Throws Error where that cannot be read.
  explicit BestCheckpoint(const std::filesystem::path& train_dir);

  // Whether the precision is better than that of the checkpoint kept; waits for the last save.
  bool is_better(double precision);
  // Saves in the background what is_better.
  void save(std::int64_t step, double precision, std::span<const data::Tensor> tensors);

  // Waits for the last save. Returns its error for as long as it is the last one: empty when all
  // went well.
  std::string finish();

  std::filesystem::path prefix_of(std::int64_t step) const;

 private:
  struct Kept {
    std::string name;  // model.ckpt-STEP
    double precision = 0;
  };

  void begin(std::int64_t step, double precision, std::span<const data::Tensor> tensors);

  std::filesystem::path dir_;
  std::optional<Kept> kept_, saving_;
  std::unique_ptr<data::CheckpointSaver> saver_;  // made with the first save
  std::string error_;
};

}  // namespace towers::app
