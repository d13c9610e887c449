#include "app/start_table.h"

#include <cstdio>
#include <set>

#include "cli/console.h"

namespace towers::app {
namespace {

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::set<int> devices_in_use(const Placement& placement) {
  return {placement.device_of_tower.begin(), placement.device_of_tower.end()};
}

// "4 towers on 1 device"
std::string shared_devices_line(const Placement& placement) {
  const std::size_t devices = devices_in_use(placement).size();
  return std::to_string(placement.device_of_tower.size()) + " towers on " +
         std::to_string(devices) + (devices == 1 ? " device" : " devices");
}

std::string devices_text(const StartTable& t) {
  std::string text = t.backend.description() + ":";
  for (const int d : devices_in_use(t.placement))
    text += " " + short_name(t.backend.devices()[static_cast<std::size_t>(d)]);
  if (t.placement.shared) text += " (" + shared_devices_line(t.placement) + ")";
  return text;
}

const char* operation_name(const Layer& layer) {
  static constexpr const char* kNames[] = {"Conv2D", "MaxPool", "LRN", "MatMul",
                                           "SparseSoftmaxCrossEntropyWithLogits"};
  return kNames[layer.op.index()];
}

}  // namespace

std::string to_text(const StartTable& t) {
  const cli::TrainOptions& o = t.options;
  const std::int64_t towers = std::int64_t{o.num_gpus} * t.ranks;
  std::string rate = short_number(o.learning_rate) + ", x " + short_number(o.learning_rate_decay) +
                     " every " + std::to_string(t.schedule.decay_steps) + " steps (" +
                     short_number(o.epochs_per_decay) + " epochs by " + o.decay_by + ")";
  std::string checkpoints = o.checkpoint_every > 0
                                ? "every " + std::to_string(o.checkpoint_every) + " steps"
                                : "at the end";
  checkpoints +=
      o.max_to_keep > 0 ? ", newest " + std::to_string(o.max_to_keep) + " kept" : ", all kept";
  std::vector<std::pair<std::string, std::string>> rows = {
      {"devices", devices_text(t)},
      {"batch", std::to_string(o.batch_size) + " x " + std::to_string(towers) + " = " +
                    std::to_string(o.batch_size * towers) + " (per tower x towers)"},
      {"precision", o.precision},
      {"data", t.data},
      {"seed", std::to_string(t.seed)},
      {"input", t.input},
      {"steps", std::to_string(t.first_step) + " to " + std::to_string(o.max_steps)},
      {"learning rate", rate},
      {"train_dir", t.train_dir},
      {"checkpoints", checkpoints},
      {"summaries", o.summary_every > 0 ? "every " + std::to_string(o.summary_every) + " steps"
                                        : std::string("none")},
  };
  if (t.ranks > 1)
    rows.insert(rows.begin() + 1,
                {"ranks", std::to_string(t.ranks) + " x " + std::to_string(o.num_gpus) + " = " +
                              std::to_string(towers) + " (processes x towers of each)"});
  if (!t.workers.empty()) rows.insert(rows.begin() + 1, {"workers", t.workers});
  return cli::table(rows);
}

std::vector<std::string> placement_lines(const Net& net,
                                         const std::vector<std::string>& device_of_tower) {
  std::vector<std::string> lines;
  for (std::size_t t = 0; t < device_of_tower.size(); ++t)
    for (const Layer& layer : net.layers)
      lines.push_back("tower_" + std::to_string(t) + "/" + layer.name + ": (" +
                      operation_name(layer) + "): " + device_of_tower[t]);
  return lines;
}

void say_nothing_to_do(std::int64_t made, std::int64_t max_steps) {
  cli::log_info("nothing to do: " + std::to_string(made) +
                " steps are made and --max_steps=" + std::to_string(max_steps));
}

void say_start(const StartTable& table, const Net& net,
               const std::vector<std::string>& device_of_tower) {
  const cli::TrainOptions& options = table.options;
  if (!options.quiet) cli::print_line(to_text(table));
  if (table.placement.shared) cli::log_info(shared_devices_line(table.placement));
  if (options.log_device_placement)
    for (const std::string& line : placement_lines(net, device_of_tower)) cli::log_info(line);
  cli::log_info(
      "Filling queue with 20000 CIFAR images before starting to train. "
      "This will take a few minutes.");
  for (int t = 0; t < options.num_gpus * table.ranks; ++t)
    cli::log_info("running: tower_" + std::to_string(t));
}

}  // namespace towers::app
