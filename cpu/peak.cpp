#include "cpu/peak.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "cpu/machine.h"
#include "cpu/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Both functions return a value that depends on all their work, so that none of it is left out.
HWY_BEFORE_NAMESPACE();
namespace towers::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Twelve sums: enough to hide a multiply-add's latency at two a cycle, few enough for the sixteen
// registers of AVX2. `factor` below 1 keeps them finite, `term` keeps them normal. Each starts from
// a value of its own: a compiler makes one sum of those that it knows to be equal.
float PeakMultiplyAdd(std::size_t rounds, float factor, float term, const float* starts) {
  const hn::ScalableTag<float> d;
  const auto f = hn::Set(d, factor);
  const auto t = hn::Set(d, term);
  const auto start = [&](int sum) { return hn::Set(d, starts[sum]); };
  auto s0 = start(0), s1 = start(1), s2 = start(2), s3 = start(3), s4 = start(4), s5 = start(5);
  auto s6 = start(6), s7 = start(7), s8 = start(8), s9 = start(9), s10 = start(10), s11 = start(11);
  for (std::size_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, f, t);
    s1 = hn::MulAdd(s1, f, t);
    s2 = hn::MulAdd(s2, f, t);
    s3 = hn::MulAdd(s3, f, t);
    s4 = hn::MulAdd(s4, f, t);
    s5 = hn::MulAdd(s5, f, t);
    s6 = hn::MulAdd(s6, f, t);
    s7 = hn::MulAdd(s7, f, t);
    s8 = hn::MulAdd(s8, f, t);
    s9 = hn::MulAdd(s9, f, t);
    s10 = hn::MulAdd(s10, f, t);
    s11 = hn::MulAdd(s11, f, t);
  }
  const auto low = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(s4, s5));
  const auto high = hn::Add(hn::Add(hn::Add(s6, s7), hn::Add(s8, s9)), hn::Add(s10, s11));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
}

std::size_t PeakOperationsPerRound() {
  return 12 * 2 * hn::Lanes(hn::ScalableTag<float>());
}

// size: a multiple of four vectors.
float PeakRead(const float* values, std::size_t size) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (std::size_t i = 0; i < size; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::Load(d, values + i));
    s1 = hn::Add(s1, hn::Load(d, values + i + lanes));
    s2 = hn::Add(s2, hn::Load(d, values + i + 2 * lanes));
    s3 = hn::Add(s3, hn::Load(d, values + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

}  // namespace HWY_NAMESPACE
}  // namespace towers::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace towers::cpu {
HWY_EXPORT(PeakMultiplyAdd);
HWY_EXPORT(PeakOperationsPerRound);
HWY_EXPORT(PeakRead);
namespace {

// Least seconds that body(task) takes on all threads at once.
double least_seconds(Machine& machine, int rounds, auto body) {
  double least = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    machine.for_each(machine.threads(), body);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    least = std::min(least, time.count());
  }
  return least;
}

}  // namespace

Peak measure_peak(const Options& options) {
  Machine machine(options);
  const SimdTarget target = machine.kernels().target();
  const auto multiply_add = entry_for(target, HWY_DISPATCH_TABLE(PeakMultiplyAdd));
  const auto operations_per_round = entry_for(target, HWY_DISPATCH_TABLE(PeakOperationsPerRound));
  const auto read = entry_for(target, HWY_DISPATCH_TABLE(PeakRead));
  const std::size_t threads = static_cast<std::size_t>(machine.threads());
  std::vector<float> results(threads * 16);  // a cache line for each

  constexpr std::size_t kMultiplyAdds = 1 << 20;
  std::vector<float> starts(12);
  std::iota(starts.begin(), starts.end(), 1.0f);
  const double arithmetic = least_seconds(machine, 25, [&](int task) {
    results[static_cast<std::size_t>(task) * 16] =
        multiply_add(kMultiplyAdds, 0.5f, 1.0f, starts.data());
  });

  const std::size_t share = (std::size_t{64} << 20) / threads / 64 * 64;  // floats
  const Pages memory(share * threads * sizeof(float));
  float* const values = reinterpret_cast<float*>(memory.data());
  const auto part = [&](int task) { return values + static_cast<std::size_t>(task) * share; };
  // Pages that were never written may all be the same one.
  least_seconds(machine, 1, [&](int task) { std::fill_n(part(task), share, 1.0f); });
  const double reading = least_seconds(machine, 5, [&](int task) {
    results[static_cast<std::size_t>(task) * 16] = read(part(task), share);
  });

  const double operations = static_cast<double>(kMultiplyAdds * operations_per_round() * threads);
  return {operations / arithmetic, static_cast<double>(share * threads * sizeof(float)) / reading};
}

}  // namespace towers::cpu
#endif
