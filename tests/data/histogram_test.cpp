// Histograms: TensorFlow's buckets, and the fast way against the plain one.

#include "data/histogram.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/support.h"

namespace towers::data {
namespace {

// TensorFlow's limits, made as it makes them.
std::vector<double> limits() {
  std::vector<double> positive;
  for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
  positive.push_back(DBL_MAX);
  std::vector<double> all(positive.size());
  std::transform(positive.rbegin(), positive.rend(), all.begin(), [](double v) { return -v; });
  all.push_back(0);
  all.insert(all.end(), positive.begin(), positive.end());
  return all;
}

// Counts by binary search, empty runs not merged.
std::vector<double> plain_counts(const std::vector<float>& values) {
  const std::vector<double> ends = limits();
  std::vector<double> counts(ends.size());
  for (const float value : values) {
    const auto end = std::upper_bound(ends.begin(), ends.end(), double{value});
    ++counts[static_cast<std::size_t>(end - ends.begin())];
  }
  return counts;
}

// Counts of all buckets, from the merged form.
std::vector<double> all_counts(const Histogram& histogram) {
  std::vector<double> ends, counts;
  histogram.encode(ends, counts);
  const std::vector<double> all = limits();
  std::vector<double> result(all.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto found = std::find(all.begin(), all.end(), ends[i]);
    REQUIRE(found != all.end());
    result[static_cast<std::size_t>(found - all.begin())] = counts[i];
  }
  return result;
}

Histogram histogram_of(const std::vector<float>& values) {
  Histogram histogram;
  histogram.add(values);
  return histogram;
}

TEST_CASE("TensorFlow's histograms are met to the last bit") {
  const auto golden = nlohmann::json::parse(test::read_file(
      std::filesystem::path(TOWERS_SOURCE_DIR) / "tests" / "golden" / "histograms.json"));
  for (const auto& h : golden["histograms"]) {
    INFO(h["name"]);
    const auto values = h["values"].get<std::vector<float>>();
    const Histogram histogram = histogram_of(values);
    std::vector<double> ends, counts;
    histogram.encode(ends, counts);
    CHECK(ends == h["bucket_limit"].get<std::vector<double>>());
    CHECK(counts == h["bucket"].get<std::vector<double>>());
    CHECK(histogram.min() == h["min"].get<double>());
    CHECK(histogram.max() == h["max"].get<double>());
    CHECK(histogram.count() == h["num"].get<double>());
    CHECK(histogram.sum() == h["sum"].get<double>());
    CHECK(histogram.sum_squares() == h["sum_squares"].get<double>());
    CHECK(histogram.zeros() == static_cast<double>(std::count(values.begin(), values.end(), 0.0f)));
  }
}

TEST_CASE("Every limit and its neighbours fall into the right bucket") {
  std::vector<float> values;
  for (const double limit : limits()) {
    if (std::abs(limit) > FLT_MAX) continue;
    const float near = static_cast<float>(limit);
    for (const float value : {near, std::nextafter(near, FLT_MAX), std::nextafter(near, -FLT_MAX)})
      values.push_back(value);
  }
  for (const float value :
       {0.0f, -0.0f, FLT_MIN, -FLT_MIN, FLT_TRUE_MIN, -FLT_TRUE_MIN, FLT_MAX, -FLT_MAX})
    values.push_back(value);
  CHECK(all_counts(histogram_of(values)) == plain_counts(values));
}

TEST_CASE("Floats of all magnitudes agree with a binary search") {
  std::mt19937 random(1);
  std::vector<float> values(200003);
  for (float& value : values) {
    do value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    while (!std::isfinite(value));
  }
  CHECK(all_counts(histogram_of(values)) == plain_counts(values));
}

TEST_CASE("Sums, ends and zeros of a layer's activations") {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(100007);
  for (float& value : values) value = std::max(normal(random), 0.0f);
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += double{value};
    squares += double{value} * double{value};
  }
  const Histogram histogram = histogram_of(values);
  CHECK(histogram.count() == 100007);
  CHECK(histogram.sum() == Approx(sum).epsilon(1e-12));
  CHECK(histogram.sum_squares() == Approx(squares).epsilon(1e-12));
  CHECK(histogram.min() == 0);
  CHECK(histogram.max() == double{*std::max_element(values.begin(), values.end())});
  CHECK(histogram.zeros() == static_cast<double>(std::count(values.begin(), values.end(), 0.0f)));
}

TEST_CASE("The smallest and the largest value may lie anywhere in a block") {
  for (const std::size_t at : {0u, 1u, 500u, 1023u, 1024u, 2050u}) {
    std::vector<float> values(2051, 0.5f);
    values[at] = -3;
    CHECK(histogram_of(values).min() == -3);
    values[at] = 3;
    CHECK(histogram_of(values).max() == 3);
  }
}

TEST_CASE("Nothing added encodes as TensorFlow's empty histogram") {
  const Histogram empty;
  std::vector<double> ends, counts;
  empty.encode(ends, counts);
  CHECK(ends == std::vector<double>{DBL_MAX});
  CHECK(counts == std::vector<double>{0});
  CHECK(empty.min() == DBL_MAX);
  CHECK(empty.max() == -DBL_MAX);
}

TEST_CASE("Values that are not finite are counted at the ends") {
  const float infinity = std::numeric_limits<float>::infinity();
  const Histogram histogram =
      histogram_of({infinity, -infinity, std::numeric_limits<float>::quiet_NaN()});
  const std::vector<double> counts = all_counts(histogram);
  CHECK(counts.front() + counts.back() == 3);
}

}  // namespace
}  // namespace towers::data
