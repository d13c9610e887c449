#include "tests/backend/problem.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "core/models/cifar10.h"
#include "tests/reference/compare.h"

namespace towers::test {
namespace {

using reference::doubles;

std::vector<float> uniform_values(std::mt19937& generator, std::size_t size, float limit) {
  std::vector<float> values(size);
  for (float& v : values) v = (static_cast<float>(generator() >> 8) / 8388608.0f - 1.0f) * limit;
  return values;
}

bool has_outputs_to_read(const Layer& layer) {
  return std::holds_alternative<Convolution>(layer.op) || std::holds_alternative<Dense>(layer.op);
}

// Padding between the variables must stay zero.
void check_padding(const Problem& problem, std::span<const float> flat) {
  std::vector<float> rest(flat.begin(), flat.end());
  for (const Variable& v : problem.layout.variables())
    std::ranges::fill(view(std::span<float>(rest), v), 0.0f);
  CHECK(std::ranges::count(rest, 0.0f) == static_cast<std::ptrdiff_t>(rest.size()));
}

}  // namespace

Problem draw_problem(const Net& net, int size, unsigned seed) {
  std::mt19937 generator(seed);
  Problem p{net, VariableLayout(net), {}, {}, {}, {}};
  p.variables.resize(p.layout.size());
  p.averages.resize(p.layout.size());
  for (const Variable& v : p.layout.variables()) {
    const float fan_in = static_cast<float>(v.size) / static_cast<float>(v.shape.back());
    const bool bias = v.shape.size() == 1;
    const std::vector<float> value =
        uniform_values(generator, v.size, bias ? 0.2f : std::sqrt(3.0f / fan_in));
    const std::vector<float> lag = uniform_values(generator, v.size, 0.1f);
    for (std::size_t i = 0; i < v.size; ++i) {
      p.variables[v.offset + i] = value[i];
      p.averages[v.offset + i] = value[i] + lag[i];
    }
  }
  p.images = uniform_values(generator, static_cast<std::size_t>(size) * net.input.size(), 2.0f);
  for (int i = 0; i < size; ++i)
    p.labels.push_back(static_cast<std::int32_t>(generator() % static_cast<unsigned>(net.classes)));
  return p;
}

Net small_net(Extent input, std::vector<Layer> layers, int classes) {
  layers.push_back({"logits", Dense{.outputs = classes, .relu = false}});
  layers.push_back({"loss", SoftmaxLoss{}});
  return {"small", input, classes, std::move(layers)};
}

Net net_of_two_buckets() {
  return small_net({6, 6, 3}, {{"conv", Convolution{.kernel = 3, .outputs = 8}},
                               {"pool", MaxPool{}},
                               {"norm", LocalResponseNorm{}},
                               {"wide", Dense{.outputs = 3712}, {.weight_decay = 0.01}}});
}

Net reduced_cifar10_net() {
  Net net = cifar10_net();
  for (Layer& layer : net.layers) {
    if (auto* c = std::get_if<Convolution>(&layer.op)) c->outputs = 16;
    if (auto* d = std::get_if<Dense>(&layer.op)) d->outputs = layer.name == "local3" ? 24 : 10;
  }
  return net;
}

HostBatch::HostBatch(Backend& backend, const Problem& problem, int first, int count) {
  const std::size_t n = static_cast<std::size_t>(count);
  const std::size_t at = static_cast<std::size_t>(first);
  const std::size_t extent = problem.net.input.size();
  images_ = backend.allocate(n * extent * sizeof(float));
  labels_ = backend.allocate(n * sizeof(std::int32_t));
  std::copy_n(problem.images.begin() + static_cast<std::ptrdiff_t>(at * extent), n * extent,
              images());
  std::copy_n(problem.labels.begin() + first, count, static_cast<std::int32_t*>(labels_.get()));
  batch_ = {images(), static_cast<const std::int32_t*>(labels_.get()), count};
}

HostBatches::HostBatches(Backend& backend, const Problem& problem, int count) {
  const int size = problem.size() / count;
  for (int t = 0; t < count; ++t) {
    hosts_.emplace_back(backend, problem, t * size, size);
    batches_.push_back(hosts_.back().get());
  }
}

std::unique_ptr<Towers> compile(const BackendUnderTest& row, Backend& backend,
                                const Problem& problem, int batch_size, int towers) {
  CompileOptions options = row.options;
  options.batch_size = batch_size;
  options.device_of_tower = place_towers(towers, backend.devices(), true).device_of_tower;
  std::unique_ptr<Towers> compiled = backend.compile(problem.net, options);
  compiled->write_variables(problem.variables, problem.averages);
  return compiled;
}

void run_step(Towers& towers, std::span<const Batch> batches) {
  towers.compute_gradients(batches, false);
  towers.average_gradients();
  towers.apply_gradients(0.1f, 0.9f);
}

std::vector<float> variables_of(Towers& towers, const Problem& problem) {
  std::vector<float> flat(problem.layout.size(), NAN);  // padding must be written as well
  towers.read_variables(flat);
  return flat;
}

std::vector<float> averages_of(Towers& towers, const Problem& problem) {
  std::vector<float> flat(problem.layout.size(), NAN);
  towers.read_moving_averages(flat);
  return flat;
}

std::vector<float> gradients_of(Towers& towers, const Problem& problem) {
  std::vector<float> flat(problem.layout.size(), NAN);
  towers.read_gradients(flat);
  return flat;
}

void check_flat(const Problem& problem, const std::string& what, std::span<const float> got,
                std::span<const double> want, double tolerance) {
  REQUIRE(got.size() == want.size());
  check_padding(problem, got);
  for (const Variable& v : problem.layout.variables()) {
    INFO(what << " of " << v.name);
    CHECK(reference::relative_error(view(got, v), want.subspan(v.offset, v.size)) <= tolerance);
  }
}

void check_losses(const Losses& got, const reference::Losses& want, double tolerance) {
  CHECK(got.cross_entropy == Approx(want.cross_entropy).epsilon(tolerance).margin(tolerance));
  CHECK(got.total == Approx(want.total).epsilon(tolerance).margin(tolerance));
  CHECK(reference::relative_error(got.weight_losses, want.weight_losses) <= tolerance);
}

void check_against_reference(const BackendUnderTest& row, Backend& backend, const Problem& problem,
                             int steps) {
  constexpr float kLearningRate = 0.005f, kAverageDecay = 0.75f;
  const reference::Batch batch{doubles(problem.images), problem.labels};
  std::vector<double> variables = doubles(problem.variables);
  std::vector<double> averages = doubles(problem.averages);
  const std::unique_ptr<Towers> towers = compile(row, backend, problem, problem.size());
  const HostBatch host(backend, problem);

  for (int step = 0; step < steps; ++step) {
    INFO("step " << step);
    towers->compute_gradients({&host.get(), 1}, true);
    const reference::Decisions decisions = reference::decisions_of(
        problem.net, batch, [&](const std::string& layer) { return towers->activations(layer); });
    const reference::Pass want = reference::forward_backward(
        problem.net, variables, batch, &decisions,
        row.options.precision == Precision::bf16 ? reference::Operands::bf16
                                                 : reference::Operands::exact);
    CHECK(want.contradiction <= row.tolerance);
    for (std::size_t l = 0; l < problem.net.layers.size(); ++l) {
      if (!has_outputs_to_read(problem.net.layers[l])) continue;
      INFO("activations of " << problem.net.layers[l].name);
      CHECK(reference::relative_error(towers->activations(problem.net.layers[l].name),
                                      want.outputs[l]) <= row.tolerance);
    }
    towers->average_gradients();
    towers->apply_gradients(kLearningRate, kAverageDecay);
    const StepReport& report = towers->report();
    CHECK_FALSE(report.non_finite.has_value());
    REQUIRE(report.towers.size() == 1);
    check_losses(report.towers[0], want.losses, row.tolerance);
    check_flat(problem, "gradient", gradients_of(*towers, problem), want.gradients, row.tolerance);

    reference::apply_gradients(want.gradients, kLearningRate, kAverageDecay, variables, averages);
    check_flat(problem, "value", variables_of(*towers, problem), variables, row.tolerance);
    check_flat(problem, "average", averages_of(*towers, problem), averages, row.tolerance);
  }
}

}  // namespace towers::test
