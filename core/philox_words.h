#pragma once
// The words of one Philox stream, one after the other.

#include <cstdint>

#include "core/philox.h"

namespace towers {

class PhiloxWords {
 public:
  PhiloxWords(std::uint64_t seed, Stream stream, std::uint64_t index)
      : seed_(seed), stream_(stream), index_(index) {}

  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox(seed_, stream_, index_, blocks_++);
      used_ = 0;
    }
    return block_.word[used_++];
  }

 private:
  std::uint64_t seed_;
  Stream stream_;
  std::uint64_t index_;
  std::uint32_t blocks_ = 0;
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace towers
