#pragma once
// How far two tensors are apart.

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace towers::reference {

inline std::vector<double> doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// ||got - want|| / ||want||, Euclidean norms; infinite where sizes differ, a value is not finite,
// or want is zero and got is not.
template <class A, class B>
double relative_error(const A& got, const B& want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (got.size() != want.size()) return kInfinite;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double g = static_cast<double>(got[i]);
    const double w = static_cast<double>(want[i]);
    difference += (g - w) * (g - w);
    norm += w * w;
  }
  if (!std::isfinite(difference) || !std::isfinite(norm)) return kInfinite;
  if (norm == 0) return difference == 0 ? 0 : kInfinite;
  return std::sqrt(difference / norm);
}

}  // namespace towers::reference
