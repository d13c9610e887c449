#include "app/periodic_evaluation.h"

#include "app/setup.h"
#include "app/signals.h"

namespace towers::app {

PeriodicEvaluation::PeriodicEvaluation(const cli::TrainOptions& options, Backend& backend,
                                       const Net& net)
    : backend_(backend),
      net_(net),
      batch_size_(options.batch_size),
      precision_(parse_precision(options.precision)),
      test_set_(load_dataset(options, data::Split::test)) {}

Precision1 PeriodicEvaluation::run(std::span<const float> variables) {
  if (!evaluation_)
    evaluation_ = std::make_unique<Evaluation>(backend_, net_, test_set_, batch_size_, precision_);
  const std::int64_t examples = static_cast<std::int64_t>(test_set_.size());
  const Precision1 result =
      evaluation_->run(variables, examples, [] { return SignalGuard::received() != 0; });
  return result.examples == examples ? result : Precision1{};
}

}  // namespace towers::app
