#pragma once
// Memory for activations and variables: aligned, zeroed, and on huge pages where the system grants
// them (a step walks over tens of megabytes; misses in the page tables would cost several percent).

#include <cstddef>
#include <span>
#include <vector>

namespace towers::cpu {

// Pages straight from the system. Those that nobody touches cost nothing.
class Pages {
 public:
  // Throws std::bad_alloc, also where all Pages, once used, would be more than the system has.
  explicit Pages(std::size_t bytes);
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&&) = delete;
  ~Pages();

  std::byte* data() const { return data_; }  // aligned to a huge page
  std::size_t size() const { return bytes_; }

 private:
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// One owner of all memory of a plan; what it hands out lives as long as it does.
class Memory {
 public:
  // `count` zeroes, aligned to 64 bytes. Throws std::bad_alloc.
  template <class T>
  std::span<T> allocate(std::size_t count) {
    return {reinterpret_cast<T*>(bytes(count * sizeof(T))), count};
  }
  std::span<float> floats(std::size_t count) { return allocate<float>(count); }

 private:
  std::byte* bytes(std::size_t count);

  std::vector<Pages> chunks_;
  std::size_t used_ = 0;  // bytes of the last chunk
};

}  // namespace towers::cpu
