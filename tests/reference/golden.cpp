#include "tests/reference/golden.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/models/cifar10.h"
#include "core/variables.h"
#include "data/checkpoint.h"
#include "tests/reference/formula.h"
#include "tests/reference/safetensors.h"

namespace towers::reference {
namespace {

void copy_to_view(const std::vector<float>& values, const Variable& v, std::vector<float>& flat) {
  if (values.size() != v.size) throw std::runtime_error(v.name + " has another size");
  std::copy(values.begin(), values.end(), view(std::span<float>(flat), v).begin());
}

// Everything but the variables.
GoldenPass read_pass(const Safetensors& file, Net net) {
  GoldenPass pass;
  pass.net = std::move(net);
  pass.images = file.floats("input");
  pass.labels = file.integers("labels");
  const std::vector<float> losses = file.floats("losses");  // weight losses, then cross-entropy
  pass.weight_losses.assign(losses.begin(), losses.end() - 1);
  pass.cross_entropy = losses.back();
  pass.total_loss = file.floats("total_loss").front();
  const VariableLayout layout(pass.net);
  pass.variables.resize(layout.size());
  pass.gradients.resize(layout.size());
  for (const Variable& v : layout.variables())
    copy_to_view(file.floats("grad/" + v.name), v, pass.gradients);
  return pass;
}

// The CIFAR-10 net with other widths and normalization: small_net of tests/golden.
Net small_net() {
  Net net = cifar10_net();
  const std::map<std::string, int> widths{
      {"conv1", 8}, {"conv2", 8}, {"local3", 24}, {"local4", 16}, {"softmax_linear", 10}};
  for (Layer& layer : net.layers) {
    if (auto* c = std::get_if<Convolution>(&layer.op)) c->outputs = widths.at(layer.name);
    if (auto* d = std::get_if<Dense>(&layer.op)) d->outputs = widths.at(layer.name);
    if (auto* n = std::get_if<LocalResponseNorm>(&layer.op)) *n = {2, 1.0, 0.05, 0.75};
  }
  return net;
}

std::map<std::string, Brief> read_briefs(const nlohmann::json& json) {
  std::map<std::string, Brief> briefs;
  for (const auto& [name, value] : json.items())
    briefs[name] = {value.at("norm").get<double>(), value.at("picked").get<std::vector<double>>()};
  return briefs;
}

}  // namespace

std::filesystem::path golden_dir() {
  if (const char* folder = std::getenv("TOWERS_GOLDEN")) return folder;
  return std::filesystem::path(TOWERS_SOURCE_DIR) / "tests" / "golden";
}

GoldenPass small_net_pass() {
  const Safetensors file(golden_dir() / "small_net.safetensors");
  GoldenPass pass = read_pass(file, small_net());
  const VariableLayout layout(pass.net);
  for (const Variable& v : layout.variables()) copy_to_view(file.floats(v.name), v, pass.variables);
  for (const Layer& layer : pass.net.layers)
    if (file.contains("output/" + layer.name))
      pass.outputs[layer.name] = file.floats("output/" + layer.name);
  pass.logits = pass.outputs.at("softmax_linear");
  return pass;
}

GoldenPass checkpoint_pass(const std::filesystem::path& folder, const std::string& name) {
  const Safetensors file(folder / "golden" / (name + ".safetensors"));
  GoldenPass pass = read_pass(file, cifar10_net());
  pass.logits = file.floats("logits");
  const data::CheckpointReader checkpoint(folder / "golden" / "model.ckpt-1500");
  const VariableLayout layout(pass.net);
  for (const Variable& v : layout.variables())
    checkpoint.read(v.name, view(std::span<float>(pass.variables), v));
  return pass;
}

Brief brief(std::span<const double> tensor) {
  Brief brief;
  for (double value : tensor) brief.norm += value * value;
  brief.norm = std::sqrt(brief.norm);
  const std::size_t count = std::min<std::size_t>(tensor.size(), 12);
  for (std::size_t i = 0; i < count; ++i)
    brief.picked.push_back(tensor[count == 1 ? 0 : i * (tensor.size() - 1) / (count - 1)]);
  return brief;
}

GoldenCurve golden_curve() {
  std::ifstream file(golden_dir() / "curve.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  GoldenCurve curve;
  curve.net = cifar10_net();
  const VariableLayout layout(curve.net);
  curve.variables.resize(layout.size());
  std::uint32_t stream = 0;
  for (const Variable& v : layout.variables())
    copy_to_view(formula(v.size, ++stream, v.name.starts_with("conv") ? 0.08f : 0.04f), v,
                 curve.variables);
  const std::size_t size = json.at("batch_size").get<std::size_t>();
  curve.images = formula(size * curve.net.input.size(), 100, 0.3f);
  const std::vector<float> cells = formula(size * 6 * 6 * 3, 101, 1.5f);  // of 4 x 4 pixels
  for (std::size_t i = 0; i < curve.images.size(); ++i) {
    const std::size_t channel = i % 3, column = i / 3 % 24, row = i / 72 % 24, image = i / 1728;
    curve.images[i] += cells[((image * 6 + row / 4) * 6 + column / 4) * 3 + channel];
  }
  for (std::size_t i = 0; i < size; ++i)
    curve.labels.push_back(static_cast<std::int32_t>(i * 7 % 10));
  curve.learning_rate = json.at("learning_rate").get<float>();
  for (const nlohmann::json& step : json.at("steps"))
    curve.steps.push_back({step.at("cross_entropy").get<double>(),
                           step.at("total_loss").get<double>(),
                           step.at("weight_losses").get<std::vector<double>>()});
  curve.first_gradients = read_briefs(json.at("first_gradients"));
  curve.last_variables = read_briefs(json.at("variables"));
  curve.last_averages = read_briefs(json.at("moving_averages"));
  return curve;
}

Batch make_batch(std::span<const float> images, std::span<const std::int32_t> labels) {
  return {{images.begin(), images.end()}, {labels.begin(), labels.end()}};
}

}  // namespace towers::reference
