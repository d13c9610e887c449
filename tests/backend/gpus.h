#pragma once
// The GPUs on which cuda_precision_test.cpp runs: each program that has it links one file that
// defines them, real ones or the stand-in's.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"

namespace towers::test {

struct GpusUnderTest {
  std::vector<int> counts;  // numbers of GPUs there can be
  // The backend on `count` GPUs, which it must leave as it found them. seed: of the order of
  // events, where that can be set.
  std::function<std::shared_ptr<Backend>(int count, std::uint64_t seed)> make;
  // What these backends have warned of, since this was asked last.
  std::function<std::vector<std::string>()> take_warnings;
  std::string why_none;  // where there are none: the reason that a skipped case gives
  // Whether cuDNN and cuBLASLt are the stand-in's plain loops: those add in one order, whatever
  // follows them, and pass NaN on; libraries promise neither.
  bool plain_loops = false;
};
GpusUnderTest gpus_under_test();

}  // namespace towers::test
