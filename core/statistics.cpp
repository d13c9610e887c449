#include "core/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace towers {

double median(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

RateStatistics rate_statistics(double work, std::span<const double> seconds) {
  const double n = static_cast<double>(seconds.size());
  std::vector<double> rates;
  for (const double s : seconds) rates.push_back(work / s);

  RateStatistics result;
  result.mean = work * n / std::accumulate(seconds.begin(), seconds.end(), 0.0);
  result.median = median(rates);
  result.lowest = *std::min_element(rates.begin(), rates.end());
  result.highest = *std::max_element(rates.begin(), rates.end());

  const double center = std::accumulate(rates.begin(), rates.end(), 0.0) / n;
  double squares = 0;
  std::vector<double> distances;
  for (const double rate : rates) {
    squares += (rate - center) * (rate - center);
    distances.push_back(std::abs(rate - result.median));
  }
  result.uncertainty = std::sqrt(squares / n) / std::sqrt(n);
  // 1.4826 makes it the standard deviation where the rates are normally distributed.
  result.jitter = 1.4826 * median(distances);
  return result;
}

}  // namespace towers
