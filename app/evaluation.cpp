#include "app/evaluation.h"

#include <algorithm>
#include <cmath>

#include "app/setup.h"
#include "cli/work_progress.h"
#include "data/evaluation_input.h"

namespace towers::app {
namespace {

bool in_top_1(std::span<const float> logits, int label) {
  const float mine = logits[static_cast<std::size_t>(label)];
  return std::all_of(logits.begin(), logits.end(),
                     [mine](float other) { return std::isfinite(other) && !(other > mine); });
}

}  // namespace

Evaluation::Evaluation(Backend& backend, const Net& net, const data::Dataset& dataset,
                       int batch_size, Precision precision, bool progress)
    : dataset_(dataset),
      batch_size_(batch_size),
      classes_(net.classes),
      progress_(progress),
      inference_(backend.compile_inference(net, batch_size, precision, 0)),
      images_(backend.allocate(static_cast<std::size_t>(batch_size) * net.input.size() *
                               sizeof(float))),
      labels_(backend.allocate(static_cast<std::size_t>(batch_size) * sizeof(std::int32_t))),
      logits_(static_cast<std::size_t>(batch_size) * static_cast<std::size_t>(net.classes)) {
  warn_if_slow(backend, {.precision = precision});
}

std::int64_t Evaluation::each(std::span<const float> variables, std::int64_t examples,
                              const std::function<bool()>& stop, const Use& use) {
  inference_->write_variables(variables);
  float* images = static_cast<float*>(images_.get());
  std::int32_t* labels = static_cast<std::int32_t*>(labels_.get());
  const std::size_t classes = static_cast<std::size_t>(classes_);
  // Told of where it lasts: a large net, or little of a CPU.
  cli::WorkProgress progress("evaluated", 0, examples, progress_, 2);
  std::int64_t done = 0;
  while (done < examples && !stop()) {
    const int count = static_cast<int>(std::min<std::int64_t>(batch_size_, examples - done));
    const std::size_t first = static_cast<std::size_t>(done);
    data::fill_evaluation_batch(dataset_, first, count, images, labels);
    inference_->logits({images, labels, count}, logits_);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      use(first + i, std::span<const float>(&logits_[i * classes], classes));
    done += count;
    progress.update(done);
  }
  return done;
}

Precision1 Evaluation::run(std::span<const float> variables, std::int64_t examples,
                           const std::function<bool()>& stop) {
  Precision1 result;
  result.examples =
      each(variables, examples, stop, [&](std::size_t index, std::span<const float> logits) {
        if (in_top_1(logits, dataset_.label(index))) ++result.right;
      });
  return result;
}

}  // namespace towers::app
