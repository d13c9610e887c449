// What `towers bench` runs, and the clock around it.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "app/backend_choice.h"
#include "app/bench_case.h"
#include "app/bench_row.h"
#include "app/setup.h"
#include "app/training_input.h"
#include "core/error.h"
#include "core/operations.h"
#include "core/schedule.h"
#include "core/variables.h"
#include "cpu/executed_operations.h"
#include "cpu/timed_tower.h"
#include "data/pipeline.h"

namespace towers::app {
namespace {

constexpr double kShortestRepetition = 0.1;  // seconds: what a clock and a scheduler add is little

double seconds_of(std::int64_t steps, const auto& step, const auto& finish) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t s = 0; s < steps; ++s) step();
  finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Doubled until they take long enough to tell: one step may have met another process.
std::int64_t steps_of_a_repetition(const auto& step, const auto& finish) {
  for (std::int64_t steps = 1;; steps *= 2) {
    const double seconds = seconds_of(steps, step, finish);
    if (seconds < kShortestRepetition / 4) continue;
    const double wanted = static_cast<double>(steps) * kShortestRepetition / seconds;
    return static_cast<std::int64_t>(std::ceil(wanted));
  }
}

// step() makes one step; finish() waits for steps that a device has not finished yet.
// begin() is called when what follows counts.
Measurement measure(const BenchCase& c, const auto& step, const auto& finish, const auto& begin) {
  const cli::BenchOptions& o = c.options;
  seconds_of(o.warmup, step, finish);
  const std::int64_t per_repetition = steps_of_a_repetition(step, finish);

  begin();
  std::vector<double> seconds;
  for (int r = 0; r < o.repeats; ++r) seconds.push_back(seconds_of(per_repetition, step, finish));

  Measurement result;
  result.rates =
      rate_statistics(static_cast<double>(per_repetition) * o.batch_size * c.towers, seconds);
  result.steps = per_repetition * o.repeats;
  for (const double s : seconds) result.seconds += s;
  return result;
}

// Towers with initial variables, and their steps at the tutorial's rates.
class Stepper {
 public:
  Stepper(const BenchCase& c, const Net& net, Backend& backend) {
    const CompileOptions compile{
        .batch_size = c.options.batch_size,
        .precision = parse_precision(c.options.precision),
        .device_of_tower = place_towers(c.towers, backend.devices(), c.options.allow_soft_placement)
                               .device_of_tower,
        .convolution = c.convolution};
    towers_ = backend.compile(net, compile);
    warn_if_slow(backend, compile);
    const VariableLayout layout(net);
    std::vector<float> variables(layout.size());
    initialize_variables(layout, 1, variables);
    towers_->write_variables(variables, variables);
  }

  Towers& towers() { return *towers_; }

  void step(std::span<const Batch> batches) {
    towers_->compute_gradients(batches, false);
    towers_->average_gradients();
    // Small enough that a batch of noise, seen again and again, never lets the variables grow
    // until arithmetic is of another kind.
    towers_->apply_gradients(1e-3f, 0.9999f);
  }
  void finish() {
    if (towers_->report().non_finite)
      throw Error("the steps measured diverged: values are not finite any more");
  }

 private:
  std::unique_ptr<Towers> towers_;
};

// One batch per tower of values as the input has them: mean 0, deviation 1.
class FixedBatches {
 public:
  FixedBatches(const BenchCase& c, const Net& net, Backend& backend) {
    const std::size_t size = static_cast<std::size_t>(c.options.batch_size);
    std::mt19937 random(1);
    std::normal_distribution<float> value;
    for (int t = 0; t < c.towers; ++t) {
      const auto images = backend.allocate(size * net.input.size() * sizeof(float));
      const auto labels = backend.allocate(size * sizeof(std::int32_t));
      auto* pixel = static_cast<float*>(images.get());
      std::generate_n(pixel, size * net.input.size(), [&] { return value(random); });
      auto* label = static_cast<std::int32_t*>(labels.get());
      std::generate_n(label, size, [&] {
        return static_cast<std::int32_t>(random() % static_cast<unsigned>(net.classes));
      });
      memory_.insert(memory_.end(), {images, labels});
      batches_.push_back({pixel, label, c.options.batch_size});
    }
  }
  std::span<const Batch> get() const { return batches_; }

 private:
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<Batch> batches_;
};

// What the layers of a step do.
struct Work {
  std::vector<LayerOperations> operations, executed, bytes;

  Work(const BenchCase& c, const Net& net, const Backend& backend)
      : operations(layer_operations(net)), bytes(layer_bytes(net, c.options.batch_size)) {
    if (backend.devices().front().kind != DeviceKind::cpu) return;
    executed = cpu::executed_operations(net, {.batch_size = c.options.batch_size,
                                              .precision = parse_precision(c.options.precision),
                                              .convolution = c.convolution});
  }

  void add_to(Measurement& m, int towers) const {
    m.operations = sum_of_steps(operations);
    m.executed = sum_of_steps(executed);
    m.bytes = sum_of_steps(bytes) * towers;
  }
  void add_layer_to(Measurement& m, std::size_t layer) const {
    m.operations = operations[layer].step();
    m.executed = executed[layer].step();
    m.bytes = bytes[layer].step();
  }
};

constexpr std::uint64_t kSeed = 1;

data::Pipeline make_pipeline(const BenchCase& c, const data::Dataset& dataset, InputForm form,
                             Backend& backend) {
  return {dataset,
          {.batch_size = c.options.batch_size,
           .capacity = 2 * c.towers,
           .threads = input_threads(c.options),
           .seed = kSeed,
           .form = form},
          [&backend](std::size_t bytes) { return backend.allocate(bytes); }};
}

}  // namespace

Measurement measure_step(const BenchCase& c, const Net& net, Backend& backend) {
  Stepper stepper(c, net, backend);
  const FixedBatches batches(c, net, backend);
  Measurement result = measure(
      c, [&] { stepper.step(batches.get()); }, [&] { stepper.finish(); }, [] {});
  Work(c, net, backend).add_to(result, c.towers);
  return result;
}

Measurement measure_input(const BenchCase& c, const data::Dataset& dataset, Backend& backend) {
  const InputForm form = backend.makes_input() ? InputForm::records : InputForm::images;
  data::Pipeline pipeline = make_pipeline(c, dataset, form, backend);
  return measure(
      c,
      [&] {
        for (int t = 0; t < c.towers; ++t) pipeline.next();
        for (int t = 0; t < c.towers; ++t) pipeline.release();
      },
      [] {}, [] {});
}

Measurement measure_train(const BenchCase& c, const Net& net, const data::Dataset& dataset,
                          Backend& backend) {
  Stepper stepper(c, net, backend);
  const InputForm form = choose_input(c.options.input, backend, stepper.towers(), dataset, kSeed);
  data::Pipeline pipeline = make_pipeline(c, dataset, form, backend);
  std::vector<Batch> batches(static_cast<std::size_t>(c.towers));
  double waited_before = 0;
  Measurement result = measure(
      c,
      [&] {
        for (Batch& batch : batches) batch = pipeline.next();
        stepper.step(batches);
        for (std::size_t t = 0; t < batches.size(); ++t) pipeline.release();
      },
      [&] { stepper.finish(); }, [&] { waited_before = pipeline.seconds_waited(); });
  Work(c, net, backend).add_to(result, c.towers);
  result.input_share = (pipeline.seconds_waited() - waited_before) / result.seconds;
  return result;
}

std::vector<Measurement> measure_layers(const BenchCase& c, const Net& net, Backend& backend) {
  if (backend.devices().front().kind != DeviceKind::cpu)
    throw Error("--what=layers measures the CPU's layers alone; give --device=cpu");
  const cli::BenchOptions& o = c.options;
  cpu::TimedTower tower(cpu_options(o), net,
                        {.batch_size = o.batch_size,
                         .precision = parse_precision(o.precision),
                         .device_of_tower = {0},
                         .convolution = c.convolution});
  const FixedBatches batches(c, net, backend);
  Measurement all = measure(
      c, [&] { tower.run(batches.get()[0]); }, [] {}, [&] { tower.reset(); });
  const Work work(c, net, backend);
  work.add_to(all, 1);

  const double step = all.seconds / static_cast<double>(all.steps);
  const auto layer = [&](const std::string& name, double forward, double backward) {
    Measurement m;
    m.layer = name;
    m.steps = all.steps;
    m.seconds = (forward + backward) * static_cast<double>(all.steps);
    m.forward_seconds = forward;
    m.backward_seconds = backward;
    m.rates.mean = o.batch_size / (forward + backward);
    return m;
  };
  std::vector<Measurement> rows;
  double forward = 0, backward = 0;
  for (const cpu::LayerTime& time : tower.times()) {
    rows.push_back(layer(net.layers[time.layer].name, time.forward, time.backward));
    work.add_layer_to(rows.back(), time.layer);
    forward += time.forward;
    backward += time.backward;
  }
  // What belongs to no layer: what prepares the variables, the loss, sums over blocks of images,
  // threads that wait for others.
  rows.push_back(layer("rest", 0, std::max(0.0, step - forward - backward)));
  all.layer = kAllLayers;
  all.forward_seconds = forward;
  all.backward_seconds = step - forward;
  rows.push_back(all);
  return rows;
}

}  // namespace towers::app
