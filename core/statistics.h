#pragma once
// What repeated measurements say together.

#include <span>
#include <vector>

namespace towers {

// The middle value, or the mean of the two in the middle. `values` is not empty.
double median(std::vector<double> values);

// Rates of repetitions that did the same amount of work each, in work per second. Mean,
// uncertainty and jitter are defined as in tf_cnn_benchmarks (get_perf_timing), so that figures
// compare.
struct RateStatistics {
  double mean = 0;    // all work by all seconds
  double median = 0;  // this and the following: of the repetitions' rates
  double lowest = 0;
  double highest = 0;
  double uncertainty = 0;  // standard deviation (of the population) / sqrt(repetitions)
  double jitter = 0;       // 1.4826 * median of distances from the median: robust deviation
};

// seconds: of each repetition, each above 0; not empty.
RateStatistics rate_statistics(double work, std::span<const double> seconds);

}  // namespace towers
