#pragma once
// Precision @ 1 of a net over a data set, as the evaluator counts it.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/backend.h"
#include "data/dataset.h"

namespace towers::app {

struct Precision1 {
  std::int64_t right = 0;
  std::int64_t examples = 0;
  double precision() const { return static_cast<double>(right) / static_cast<double>(examples); }
};

// Evaluates with one compiled net; keeps its buffers between calls.
class Evaluation {
 public:
  // `backend` and `dataset` must outlive it. progress: where it lasts, a line tells how far it is;
  // not beside training, which has a line of its own.
  Evaluation(Backend& backend, const Net& net, const data::Dataset& dataset, int batch_size,
             Precision precision, bool progress = true);

  // For each of the first `examples` images of the data set, once and in order: its index and its
  // logits, which are valid during the call. `stop` is asked between batches. Returns how many.
  using Use = std::function<void(std::size_t index, std::span<const float> logits)>;
  std::int64_t each(std::span<const float> variables, std::int64_t examples,
                    const std::function<bool()>& stop, const Use& use);

  // Counts the first `examples` images of the data set, each once. An example is right when no
  // class has a larger logit than its label's (TensorFlow's in_top_k with k = 1); a logit that is
  // not finite is wrong. When `stop` says so the result counts fewer examples.
  Precision1 run(std::span<const float> variables, std::int64_t examples,
                 const std::function<bool()>& stop);

 private:
  const data::Dataset& dataset_;
  int batch_size_;
  int classes_;
  bool progress_;
  std::unique_ptr<Inference> inference_;
  std::shared_ptr<void> images_, labels_;
  std::vector<float> logits_;
};

}  // namespace towers::app
