#pragma once
// Vector targets of the kernels. Included before any Highway header.
//
// A kernel file is compiled once per target (Highway's foreach_target) and offers a function that
// returns its entry points for one target; so each backend has a target of its own, and nothing
// depends on a process-wide choice.

// Left out: targets that bring nothing to fp32 kernels over a neighbour kept, and those whose
// vector length is unknown to the compiler (arrays of accumulators need it). More of the former,
// which not every version of Highway knows, come from CMake.
#define HWY_DISABLED_TARGETS                                                   \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | \
   TOWERS_TARGETS_LEFT_OUT)

#include <hwy/targets.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace towers::cpu {

using SimdTarget = std::int64_t;  // one of Highway's HWY_AVX2, HWY_NEON, ...

// Targets that were compiled and that this processor runs, the best one first.
std::vector<SimdTarget> available_targets();

// The target of that name ("AVX2"), or the best one for "auto". Throws UsageError naming those
// available.
SimdTarget find_target(const std::string& name);

// Entry of the table that HWY_EXPORT made for `target`.
template <class Function, std::size_t n>
Function entry_for(SimdTarget target, Function const (&table)[n]) {
  if constexpr (n == 1) {
    return table[0];
  } else {
    hwy::ChosenTarget chosen;
    chosen.Update(target);
    return table[chosen.GetIndex()];
  }
}

}  // namespace towers::cpu
