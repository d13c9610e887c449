#include "tests/data/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/support.h"

namespace {

std::atomic<std::uint64_t> count{0};
std::atomic<std::size_t> failing_size{0};

}  // namespace

#ifndef TOWERS_SANITIZED
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++count;
  return bytes != 0 && bytes == failing_size ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
}
void* operator new(std::size_t bytes) {
  void* memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
#endif

namespace towers::test {

std::uint64_t allocations() {
  return count;
}

FailingAllocations::FailingAllocations(std::size_t bytes) {
  failing_size = bytes;
}
FailingAllocations::~FailingAllocations() {
  failing_size = 0;
}

}  // namespace towers::test
