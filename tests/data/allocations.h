#pragma once
// Counts and fails this program's allocations: allocations.cpp replaces operator new.

#include <cstddef>
#include <cstdint>

namespace towers::test {

// Calls of operator new so far, by any thread.
std::uint64_t allocations();

// While it lives, allocations of exactly `bytes` bytes throw std::bad_alloc, in every thread.
class FailingAllocations {
 public:
  explicit FailingAllocations(std::size_t bytes);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
};

}  // namespace towers::test
