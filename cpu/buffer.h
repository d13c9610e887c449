#pragma once
// Aligned, zeroed memory with one owner.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <utility>

namespace towers::cpu {

// Pages straight from the system: aligned beyond any vector, zero, and those that nobody touches
// cost nothing. Throws std::bad_alloc.
class Pages {
 public:
  Pages() = default;
  explicit Pages(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
    data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    ::madvise(data_, bytes_, MADV_HUGEPAGE);  // a wish: fewer TLB misses
  }
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Pages() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// `size` zeroed values.
template <class T>
class BasicBuffer {
 public:
  BasicBuffer() = default;
  explicit BasicBuffer(std::size_t size) : pages_(size * sizeof(T)), size_(size) {}
  T* data() const { return static_cast<T*>(pages_.data()); }
  std::size_t size() const { return size_; }
  std::span<T> span() const { return {data(), size_}; }

 private:
  Pages pages_;
  std::size_t size_ = 0;
};
using Buffer = BasicBuffer<float>;

}  // namespace towers::cpu
