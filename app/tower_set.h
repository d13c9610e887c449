#pragma once
// The net on this process's devices: compiled for --num_gpus towers.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/ranks.h"
#include "cli/options.h"
#include "core/backend.h"
#include "core/net.h"
#include "core/schedule.h"
#include "core/variables.h"

namespace towers::app {

struct TowerSet {
  // ranks: the processes whose towers step together with these; null: this one alone. Throws Error
  // or UsageError: no such device, too few of them, memory.
  explicit TowerSet(const cli::TrainOptions& options, Ranks* ranks = nullptr);

  std::vector<std::string> device_names() const;  // full ones, by tower
  // A GraphDef of the towers for TensorBoard.
  std::string graph(int batch_size) const;

  Net net;
  VariableLayout layout;
  std::unique_ptr<Backend> backend;
  Placement placement;
  std::unique_ptr<Towers> towers;
};

// The learning rate and the averages' decay that the flags ask for, where an update takes the
// examples of `batches` batches in all.
Schedule schedule_of(const cli::TrainOptions& options, int batches);

}  // namespace towers::app
