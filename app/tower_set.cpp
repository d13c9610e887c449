#include "app/tower_set.h"

#include <utility>

#include "app/backend_choice.h"
#include "app/rank_devices.h"
#include "app/setup.h"
#include "core/models/cifar10.h"
#include "data/dataset.h"
#include "data/event_file.h"

namespace towers::app {
namespace {

CompileOptions compile_options(const cli::TrainOptions& options, const Placement& placement,
                               std::shared_ptr<CommunicationThread> ranks) {
  return {.batch_size = options.batch_size,
          .precision = parse_precision(options.precision),
          .device_of_tower = placement.device_of_tower,
          .deterministic = options.deterministic,
          .convolution = options.convolution,
          .ranks = std::move(ranks)};
}

}  // namespace

TowerSet::TowerSet(const cli::TrainOptions& options, Ranks* ranks)
    : net(cifar10_net(options.weight_decay)),
      layout(net),
      backend(make_backend(options)),
      placement(place(options, *backend, ranks)),
      towers(backend->compile(
          net, compile_options(options, placement, ranks ? ranks->thread() : nullptr))) {
  warn_if_slow(*backend, compile_options(options, placement, nullptr));
}

std::vector<std::string> TowerSet::device_names() const {
  std::vector<std::string> names;
  for (int device : placement.device_of_tower)
    names.push_back(full_name(backend->devices()[static_cast<std::size_t>(device)]));
  return names;
}

std::string TowerSet::graph(int batch_size) const {
  return data::graph_def(net, device_names(), batch_size);
}

Schedule schedule_of(const cli::TrainOptions& o, int batches) {
  const std::int64_t examples_per_step =
      o.decay_by == "examples" ? static_cast<std::int64_t>(o.batch_size) * batches : o.batch_size;
  return {.learning_rate = static_cast<float>(o.learning_rate),
          .learning_rate_decay = static_cast<float>(o.learning_rate_decay),
          .decay_steps = decay_steps(data::kTrainExamples, examples_per_step, o.epochs_per_decay),
          .moving_average_decay = static_cast<float>(o.moving_average_decay)};
}

}  // namespace towers::app
