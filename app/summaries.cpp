#include "app/summaries.h"

#include <cmath>
#include <variant>

#include "data/histogram.h"

namespace towers::app {
namespace {

bool has_activations(const Layer& layer) {
  return std::holds_alternative<Convolution>(layer.op) || std::holds_alternative<Dense>(layer.op);
}

data::Histogram histogram_of(std::span<const float> values) {
  data::Histogram histogram;
  histogram.add(values);
  return histogram;
}

std::string layer_of(const std::string& variable) {
  return variable.substr(0, variable.find('/'));
}

}  // namespace

Losses mean_losses(std::span<const Losses> towers) {
  Losses mean;
  const float n = static_cast<float>(towers.size());
  mean.weight_losses.assign(towers.front().weight_losses.size(), 0.0f);
  for (const Losses& tower : towers) {
    mean.cross_entropy += tower.cross_entropy / n;
    mean.total += tower.total / n;
    for (std::size_t i = 0; i < mean.weight_losses.size(); ++i)
      mean.weight_losses[i] += tower.weight_losses[i] / n;
  }
  return mean;
}

Summaries::Summaries(const Net& net, const VariableLayout& layout)
    : net_(net), layout_(layout), flat_(layout.size()) {}

void Summaries::write(data::EventFileWriter& events, std::int64_t step, Towers& towers,
                      std::span<const Losses> losses, float learning_rate) {
  events.begin_summary(step);
  for (const Layer& layer : net_.layers) {
    if (!has_activations(layer)) continue;
    const data::Histogram histogram = histogram_of(towers.activations(layer.name));
    events.histogram(layer.name + "/activations", histogram);
    events.scalar(layer.name + "/sparsity",
                  static_cast<float>(histogram.zeros() / histogram.count()));
  }
  const Losses mean = mean_losses(losses);
  std::size_t decayed = 0;
  for (const Variable& v : layout_.variables())
    if (v.weight_decay != 0)
      events.scalar(layer_of(v.name) + "/weight_loss", mean.weight_losses[decayed++]);
  events.scalar("cross_entropy", mean.cross_entropy);
  events.scalar("total_loss", mean.total);
  events.scalar("learning_rate", learning_rate);

  towers.read_gradients(flat_);
  for (const Variable& v : layout_.variables()) {
    const data::Histogram histogram = histogram_of(view(std::span<const float>(flat_), v));
    // Of a step that overflowed in float16, and changed nothing, there is no histogram to show.
    if (std::isfinite(histogram.sum_squares())) events.histogram(v.name + "/gradients", histogram);
  }
  towers.read_variables(flat_);
  for (const Variable& v : layout_.variables())
    events.histogram(v.name, histogram_of(view(std::span<const float>(flat_), v)));
  events.end_summary();
}

}  // namespace towers::app
