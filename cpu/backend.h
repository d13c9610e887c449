#pragma once
// Towers on the CPU.

#include <memory>
#include <string>

#include "core/backend.h"

namespace towers::cpu {

struct Options {
  // Shared out over the devices, of which each has one at least; 0: as affinity and cgroup allow.
  int threads = 0;
  int devices = 1;            // /cpu:0, /cpu:1, ...
  std::string simd = "auto";  // a vector target by Highway's name, for example AVX2
  bool pin_threads = false;   // each on a processor of its own, of those that affinity allows
  int first_processor = 0;    // of these, the first one's place (see processors_for)
};

// Throws UsageError for a vector target that this machine or build does not have, naming those it
// has; for numbers of threads or devices out of range; and for more threads than processors to keep
// them on. Throws Error where the system refuses threads.
std::unique_ptr<Backend> make_backend(const Options& options);

// Vector targets of this build that this processor has ("AVX3, AVX2"); "auto" takes the first.
std::string available_simd();

// What --precision=bf16 is computed by: "oneDNN 2.6.3", or "emulated: " and why.
std::string bf16_support();

// Threads this process may use: the affinity mask and the cgroup's CPU quota, at least 1.
int available_threads();

}  // namespace towers::cpu
