#include "core/variables.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "core/philox.h"

namespace towers {
namespace {

constexpr std::size_t kAlignment = 16;  // values: one cache line, and the widest SIMD vector

// Element `index` of variable `variable`: normal, redrawn beyond two standard deviations.
float truncated_normal(std::uint64_t seed, std::uint32_t variable, std::uint64_t index) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const PhiloxBlock r = philox(seed, Stream::initial_values, index, variable + (attempt << 16));
    for (int pair = 0; pair < 4; pair += 2) {  // Box and Muller's transform
      const double u = 1.0 - static_cast<double>(uniform(r.word[pair]));
      const double angle = 2.0 * std::numbers::pi * static_cast<double>(uniform(r.word[pair + 1]));
      const double normal = std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
      if (std::abs(normal) <= 2.0) return static_cast<float>(normal);
    }
  }
}

}  // namespace

VariableLayout::VariableLayout(const Net& net) {
  const std::vector<Extent> extents = output_extents(net);
  const auto add = [this](std::string name, std::vector<std::int64_t> shape, double stddev,
                          double constant, double weight_decay, std::size_t layer) {
    Variable v{std::move(name), std::move(shape), size_, 1, stddev, constant, weight_decay, layer};
    for (std::int64_t d : v.shape) v.size *= static_cast<std::size_t>(d);
    values_ += v.size;
    size_ += (v.size + kAlignment - 1) / kAlignment * kAlignment;
    variables_.push_back(std::move(v));
  };
  for (std::size_t i = 0; i < net.layers.size(); ++i) {
    const Layer& layer = net.layers[i];
    const Extent input = i == 0 ? net.input : extents[i - 1];
    std::vector<std::int64_t> shape;
    if (const auto* c = std::get_if<Convolution>(&layer.op))
      shape = {c->kernel, c->kernel, input.channels, c->outputs};
    else if (const auto* d = std::get_if<Dense>(&layer.op))
      shape = {static_cast<std::int64_t>(input.size()), d->outputs};
    else
      continue;
    const Parameters& p = layer.parameters;
    const std::int64_t outputs = shape.back();
    add(layer.name + "/weights", std::move(shape), p.weights_stddev, 0, p.weight_decay, i);
    add(layer.name + "/biases", {outputs}, 0, p.biases, 0, i);
  }
}

const Variable& VariableLayout::find(const std::string& name) const {
  const auto found = std::find_if(variables_.begin(), variables_.end(),
                                  [&](const Variable& v) { return v.name == name; });
  if (found == variables_.end()) throw std::out_of_range("no variable " + name);
  return *found;
}

void initialize_variables(const VariableLayout& layout, std::uint64_t seed, std::span<float> flat) {
  std::fill(flat.begin(), flat.end(), 0.0f);
  for (std::size_t v = 0; v < layout.variables().size(); ++v) {
    const Variable& variable = layout.variables()[v];
    const std::span<float> values = view(flat, variable);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = variable.stddev == 0
                      ? static_cast<float>(variable.constant)
                      : static_cast<float>(variable.stddev) *
                            truncated_normal(seed, static_cast<std::uint32_t>(v), i);
  }
}

}  // namespace towers
