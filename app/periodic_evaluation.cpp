#include "app/periodic_evaluation.h"

#include "app/setup.h"
#include "app/signals.h"

namespace towers::app {

PeriodicEvaluation::PeriodicEvaluation(const cli::TrainOptions& options, Backend& backend,
                                       const Net& net)
    : test_set_(load_dataset(options, data::Split::test)),
      evaluation_(backend, net, test_set_, options.batch_size, parse_precision(options.precision),
                  false) {}

Precision1 PeriodicEvaluation::run(std::span<const float> variables) {
  const std::int64_t examples = static_cast<std::int64_t>(test_set_.size());
  const Precision1 result =
      evaluation_.run(variables, examples, [] { return SignalGuard::received() != 0; });
  return result.examples == examples ? result : Precision1{};
}

}  // namespace towers::app
