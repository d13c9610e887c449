#pragma once
// A net with values for all that goes into it, and how to run it on a backend.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/net.h"
#include "core/variables.h"
#include "tests/backend/under_test.h"
#include "tests/reference/net.h"

namespace towers::test {

struct Problem {
  Net net;
  VariableLayout layout;
  std::vector<float> variables, averages;  // flat
  std::vector<float> images;               // [size, input extent]
  std::vector<std::int32_t> labels;        // [size]

  int size() const { return static_cast<int>(labels.size()); }
};

// Drawn values, the same in every run. Weights are scaled so that activations and logits stay of
// order one: a saturated softmax cancels, and float32 cannot do better than lose digits there.
Problem draw_problem(const Net& net, int size, unsigned seed = 1);

// `layers`, then a dense layer to `classes` and the softmax loss.
Net small_net(Extent input, std::vector<Layer> layers, int classes = 3);
// Small, but with so many weights that GPUs reduce the gradients in two buckets.
Net net_of_two_buckets();

// The CIFAR-10 net's layers at a fraction of the width.
Net reduced_cifar10_net();

// Examples [first, first + count) of a problem in the backend's own memory.
class HostBatch {
 public:
  HostBatch(Backend& backend, const Problem& problem, int first, int count);
  HostBatch(Backend& backend, const Problem& problem)
      : HostBatch(backend, problem, 0, problem.size()) {}
  const Batch& get() const { return batch_; }
  float* images() { return static_cast<float*>(images_.get()); }

 private:
  std::shared_ptr<void> images_, labels_;
  Batch batch_;
};

// The problem's examples in `count` consecutive batches, one per tower.
class HostBatches {
 public:
  HostBatches(Backend& backend, const Problem& problem, int count);
  std::span<const Batch> get() const { return batches_; }

 private:
  std::vector<HostBatch> hosts_;
  std::vector<Batch> batches_;
};

// `towers` towers over the backend's devices, `batch_size` each, with the problem's variables.
std::unique_ptr<Towers> compile(const BackendUnderTest& row, Backend& backend,
                                const Problem& problem, int batch_size, int towers = 1);

// One whole step.
void run_step(Towers& towers, std::span<const Batch> batches);

// Flat buffers of `towers`.
std::vector<float> variables_of(Towers& towers, const Problem& problem);
std::vector<float> averages_of(Towers& towers, const Problem& problem);
std::vector<float> gradients_of(Towers& towers, const Problem& problem);

// Each variable's part of two flat buffers agrees within `tolerance`.
void check_flat(const Problem& problem, const std::string& what, std::span<const float> got,
                std::span<const double> want, double tolerance);
void check_losses(const Losses& got, const reference::Losses& want, double tolerance);

// `steps` steps of one tower on all examples, each against the double-precision reference:
// activations, losses, gradients, then variables and moving averages. The reference takes the
// backend's relu and pool decisions, which must be right within the tolerance themselves.
void check_against_reference(const BackendUnderTest& row, Backend& backend, const Problem& problem,
                             int steps = 1);

}  // namespace towers::test
