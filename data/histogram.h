#pragma once
// Histograms bucketed as TensorFlow's tf.summary.histogram does: limits grow by 1.1 from 1e-12 to
// 1e20 on both sides of zero.

#include <cstdint>
#include <span>
#include <vector>

namespace towers::data {

// Not to be shared by threads.
class Histogram {
 public:
  Histogram();

  // Values must be finite (others are counted at the ends). About a nanosecond a value.
  void add(std::span<const float> values);

  double min() const { return min_; }
  double max() const { return max_; }
  double count() const { return count_; }
  double sum() const { return sum_; }
  double sum_squares() const { return sum_squares_; }
  double zeros() const { return zeros_; }  // values equal to 0: sparsity = zeros / count
  // Upper limits and counts as HistogramProto holds them: runs of empty buckets merged.
  void encode(std::vector<double>& limits, std::vector<double>& counts) const;

 private:
  void add_moments(std::span<const float> values);

  double min_, max_, count_ = 0, sum_ = 0, sum_squares_ = 0, zeros_ = 0;
  std::vector<std::uint64_t> buckets_;
};

}  // namespace towers::data
