#include "cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "cpu/available_memory.h"

namespace towers::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kChunk = 16 * kHugePage;
constexpr std::size_t kCacheLine = 64;

// Of all that is mapped. The system would grant more than it has.
std::atomic<std::uint64_t> mapped{0};

void require_within_reach(std::size_t bytes) {
  if (bytes < kChunk) return;
  if (const auto reach = memory_within_reach(); reach && mapped + bytes > *reach)
    throw std::bad_alloc();
}

std::size_t rounded_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

Pages::Pages(std::size_t bytes) : bytes_(rounded_up(std::max<std::size_t>(bytes, 1), kHugePage)) {
  require_within_reach(bytes_);
  mapping_bytes_ = bytes_ + kHugePage;
  mapping_ =
      ::mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  mapped += bytes_;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  data_ = static_cast<std::byte*>(mapping_) + (rounded_up(address, kHugePage) - address);
  ::madvise(data_, bytes_, MADV_HUGEPAGE);  // a wish: nothing depends on it
}

Pages::Pages(Pages&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(other.mapping_bytes_),
      data_(other.data_),
      bytes_(other.bytes_) {}

Pages::~Pages() {
  if (mapping_ == nullptr) return;
  ::munmap(mapping_, mapping_bytes_);
  mapped -= bytes_;
}

std::byte* Memory::bytes(std::size_t count) {
  const std::size_t needed = rounded_up(std::max<std::size_t>(count, 1), kCacheLine);
  if (chunks_.empty() || chunks_.back().size() - used_ < needed) {
    chunks_.emplace_back(std::max(needed, kChunk));
    used_ = 0;
  }
  std::byte* start = chunks_.back().data() + used_;
  used_ += needed;
  return start;
}

}  // namespace towers::cpu
