#include "data/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace towers::data {
namespace {

// Upper ends of the buckets, ascending: limit i ends bucket i, which starts at limit i - 1.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    positive.push_back(DBL_MAX);
    std::vector<double> all;
    for (auto v = positive.rbegin(); v != positive.rend(); ++v) all.push_back(-*v);
    all.push_back(0.0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return limits;
}

// A float's sign, exponent and first 4 bits of fraction number a cell. Within a cell values differ
// by at most a factor of 17/16, buckets by 1.1: no cell holds more than one limit. So the bucket of
// a value is its cell's first bucket, or the next when the value has reached the limit.
constexpr int kCellShift = 19;
constexpr std::size_t kCells = std::size_t{1} << (32 - kCellShift);

struct Cell {
  float limit;          // the smallest float not below the first bucket's limit
  std::uint32_t first;  // bucket of the cell's smallest value
};

// Values that are not finite get cells too, at the ends, so that no input indexes beyond the table.
const std::array<Cell, kCells>& cell_table() {
  static const std::array<Cell, kCells> cells = [] {
    const std::vector<double>& limits = bucket_limits();
    std::array<Cell, kCells> table;
    for (std::uint32_t i = 0; i < kCells; ++i) {
      const std::uint32_t low = i << kCellShift;
      const std::uint32_t high = low | ((1u << kCellShift) - 1);
      // The smallest value: of a negative cell the one of largest magnitude.
      const float smallest = std::bit_cast<float>((low >> 31) != 0 ? high : low);
      // No value reaches a limit of NaN.
      Cell cell{std::numeric_limits<float>::quiet_NaN(),
                static_cast<std::uint32_t>((low >> 31) != 0 ? 0 : limits.size() - 1)};
      if (std::isfinite(smallest)) {
        const auto limit = std::upper_bound(limits.begin(), limits.end(), double{smallest});
        cell.first = static_cast<std::uint32_t>(limit - limits.begin());
        if (std::abs(*limit) <= double{FLT_MAX}) {
          cell.limit = static_cast<float>(*limit);
          if (double{cell.limit} < *limit)
            cell.limit = std::nextafter(cell.limit, std::numeric_limits<float>::infinity());
        }
      }
      table[i] = cell;
    }
    return table;
  }();
  return cells;
}

// Counts of equal neighbours (zeros after a relu) would wait for one another in one counter, so
// neighbours count in different lanes.
constexpr std::size_t kLanes = 4;
// 774 limits a side, the ends and zero. An array, since it is cleared for every call.
constexpr std::size_t kMostBuckets = 1552;
constexpr std::size_t kMostPerCount = std::size_t{1} << 30;  // counts are 32 bits wide

void count_buckets(std::span<const float> values, std::vector<std::uint64_t>& buckets) {
  const std::array<Cell, kCells>& cells = cell_table();
  std::uint32_t counts[kMostBuckets][kLanes] = {};
  const auto count = [&](float value, std::size_t lane) {
    const Cell& cell = cells[std::bit_cast<std::uint32_t>(value) >> kCellShift];
    ++counts[cell.first + (value >= cell.limit ? 1u : 0u)][lane];
  };
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) count(values[i + lane], lane);
  for (; i < values.size(); ++i) count(values[i], 0);
  for (std::size_t b = 0; b < buckets.size(); ++b)
    for (const std::uint32_t c : counts[b]) buckets[b] += c;
}

// Vectors of GCC and Clang, of any width that the processor splits as it must.
using Floats = float __attribute__((vector_size(16)));
using Integers = std::int32_t __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(32)));

}  // namespace

Histogram::Histogram() : min_(DBL_MAX), max_(-DBL_MAX), buckets_(bucket_limits().size()) {}

void Histogram::add(std::span<const float> values) {
  for (std::size_t done = 0; done < values.size(); done += kMostPerCount)
    count_buckets(values.subspan(done, std::min(kMostPerCount, values.size() - done)), buckets_);
  add_moments(values);
}

// Sums in double. Whole blocks go by lanes, with enough of them to hide the additions' latency; the
// rest goes one by one, as TensorFlow adds.
void Histogram::add_moments(std::span<const float> values) {
  constexpr std::size_t kWidth = 4, kUnroll = 4, kBlock = 1024;
  float low = std::numeric_limits<float>::infinity();
  float high = -low;
  while (values.size() >= kBlock) {
    Doubles sum[kUnroll] = {}, squares[kUnroll] = {};
    Floats lows[kUnroll], highs[kUnroll];
    Integers zeros[kUnroll] = {};
    std::fill_n(lows, kUnroll, low - Floats{});
    std::fill_n(highs, kUnroll, high - Floats{});
    for (std::size_t i = 0; i < kBlock; i += kWidth * kUnroll)
      for (std::size_t u = 0; u < kUnroll; ++u) {
        Floats value;
        std::memcpy(&value, values.data() + i + u * kWidth, sizeof value);
        lows[u] = value < lows[u] ? value : lows[u];
        highs[u] = value > highs[u] ? value : highs[u];
        zeros[u] -= value == Floats{};
        const Doubles wide = __builtin_convertvector(value, Doubles);
        sum[u] += wide;
        squares[u] += wide * wide;
      }
    for (std::size_t u = 0; u < kUnroll; ++u)
      for (std::size_t lane = 0; lane < kWidth; ++lane) {
        low = std::min(low, lows[u][lane]);
        high = std::max(high, highs[u][lane]);
        zeros_ += zeros[u][lane];
        sum_ += sum[u][lane];
        sum_squares_ += squares[u][lane];
      }
    count_ += double{kBlock};
    values = values.subspan(kBlock);
  }
  for (const float value : values) {
    low = std::min(low, value);
    high = std::max(high, value);
    zeros_ += value == 0.0f ? 1 : 0;
    sum_ += double{value};
    sum_squares_ += double{value} * double{value};
    count_ += 1;
  }
  min_ = std::min(min_, double{low});
  max_ = std::max(max_, double{high});
}

void Histogram::encode(std::vector<double>& limits, std::vector<double>& counts) const {
  limits.clear();
  counts.clear();
  const std::vector<double>& ends = bucket_limits();
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const bool extends_empty_run = buckets_[i] == 0 && i > 0 && buckets_[i - 1] == 0;
    if (extends_empty_run) {
      limits.back() = ends[i];
      continue;
    }
    limits.push_back(ends[i]);
    counts.push_back(static_cast<double>(buckets_[i]));
  }
}

}  // namespace towers::data
