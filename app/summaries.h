#pragma once
// The summaries of one step, named as TensorFlow's tutorial names them (without tower prefixes).

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend.h"
#include "core/net.h"
#include "core/variables.h"
#include "data/event_file.h"

namespace towers::app {

// Mean over towers of each loss.
Losses mean_losses(std::span<const Losses> towers);

class Summaries {
 public:
  // `net` and `layout` must outlive it.
  Summaries(const Net& net, const VariableLayout& layout);

  // Writes one Event: activations (histogram and sparsity) of the last tower, the losses' means
  // over towers, the learning rate, histograms of the averaged gradients (those that are finite)
  // and of the variables after the update. The step must have been made with keep_activations.
  void write(data::EventFileWriter& events, std::int64_t step, Towers& towers,
             std::span<const Losses> losses, float learning_rate);

 private:
  const Net& net_;
  const VariableLayout& layout_;
  std::vector<float> flat_;  // gradients, then variables
};

}  // namespace towers::app
