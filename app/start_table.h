#pragma once
// What the start of a run tells: the table of what will run where, and the placement of layers.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "core/backend.h"
#include "core/device.h"
#include "core/net.h"
#include "core/schedule.h"

namespace towers::app {

struct StartTable {
  const cli::TrainOptions& options;
  const Backend& backend;
  const Placement& placement;
  const Schedule& schedule;
  std::string data;
  std::uint64_t seed;
  std::string input;
  std::int64_t first_step;
  std::string train_dir;
  int ranks = 1;             // processes, each with towers as here
  std::string workers = {};  // of parameter servers, and what they make of gradients; empty: none
};

std::string to_text(const StartTable& table);

// The table (not with --quiet), who shares a device, with --log_device_placement each layer's
// place, and that the queue fills.
void say_start(const StartTable& table, const Net& net,
               const std::vector<std::string>& device_of_tower);

// For a run that finds all its steps made.
void say_nothing_to_do(std::int64_t made, std::int64_t max_steps);

// "tower_0/conv1: (Conv2D): /job:localhost/replica:0/task:0/device:CPU:0", each layer of each tower
// once.
std::vector<std::string> placement_lines(const Net& net,
                                         const std::vector<std::string>& device_of_tower);

}  // namespace towers::app
