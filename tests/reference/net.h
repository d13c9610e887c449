#pragma once
// A whole net (core/net.h) in double precision, on flat buffers in the layout of core/variables.h.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/net.h"
#include "core/variables.h"

namespace towers::reference {

struct Batch {
  std::vector<double> images;        // [size, input extent]
  std::vector<std::int32_t> labels;  // [size]
  int size() const { return static_cast<int>(labels.size()); }
};

// Which values each relu let pass and which value each pool window took. Two computations that
// round differently decide differently where values are close, and then their gradients differ by
// far more than rounding; under equal decisions they must agree.
struct Decisions {
  std::vector<std::vector<std::uint8_t>> relu;  // by layer: [size, output extent], 1 where passed
  std::vector<std::vector<std::int32_t>>
      pool;  // by layer: [size, output extent], index into the example's input
};

struct Losses {
  double cross_entropy = 0;           // mean over the batch
  std::vector<double> weight_losses;  // decay * sum(w^2) / 2, in the layout's order
  double total = 0;
};

struct Pass {
  std::vector<std::vector<double>> outputs;  // by layer: [size, extent], after relu
  Decisions decisions;
  Losses losses;
  std::vector<double> gradients;  // of the total loss, weight decay included; layout.size() values
  // How wrong forced decisions were, over all layers: the largest value that a relu decided against
  // its sign, or by which a pool's winner was not the largest, over the layer's largest. Rounding
  // leaves about 1e-7.
  double contradiction = 0;

  // Output of the last layer before the loss.
  const std::vector<double>& logits() const { return outputs[outputs.size() - 2]; }
};

// What convolutions and dense layers multiply: values as they are, or rounded to bf16 (8
// significant bits, to nearest even). Biases, sums and all else are exact.
enum class Operands { exact, bf16 };
double round_to_bf16(double value);

// Forward and backward of one tower. With `forced`, relu and pool take those decisions and make
// none of their own. Runs on all cores; the result does not depend on their number.
Pass forward_backward(const Net& net, std::span<const double> variables, const Batch& batch,
                      const Decisions* forced = nullptr, Operands operands = Operands::exact);

// The decisions that follow from the outputs of the convolution and dense layers, [size, extent]
// each, as another implementation computed them.
Decisions decisions_of(
    const Net& net, const Batch& batch,
    const std::function<std::span<const float>(const std::string& layer)>& output);

// value -= learning_rate * gradient; average -= (1 - average_decay) * (average - value).
void apply_gradients(std::span<const double> gradients, double learning_rate, double average_decay,
                     std::span<double> variables, std::span<double> averages);

}  // namespace towers::reference
