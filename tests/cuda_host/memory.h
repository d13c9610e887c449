#pragma once
// Memory of the stand-in's devices and pinned host memory. Each allocation ends at a page that
// nobody may touch, and device memory itself may be touched by work of its own device alone: its
// pages are closed but while that work runs, and open one by one as it reaches for them. Addresses
// are never used twice, so that what was freed is noticed.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace towers::cuda_host {

constexpr int kPinned = -1;  // in the place of a device: host memory

struct Allocation {
  std::uintptr_t begin = 0;  // as handed out, aligned to 256
  std::size_t size = 0;      // as asked for
  std::uintptr_t pages = 0;
  std::size_t pages_size = 0;
  int device = 0;
  bool open = false;  // its pages may be touched
};

class Memory {
 public:
  // Reserves addresses for `devices` devices of `size` bytes each.
  Memory(int devices, std::size_t size);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Filled with NaN. Null where there is too little.
  void* allocate(int device, std::size_t size);
  // Returns what was wrong ("freed twice", ...), or "".
  std::string free(void* pointer, bool pinned);

  std::size_t used(int device) const;
  std::size_t size() const { return size_; }
  // The allocation in which all `size` bytes from `pointer` lie, or null.
  const Allocation* find(const void* pointer, std::size_t size) const;
  bool reserved(const void* pointer) const;  // for a device or pinned, whether allocated or not
  std::vector<std::string> leaks() const;

  // A fault at `address` by work of `devices` (a bit each). Opens the page and returns "", or says
  // what is wrong with that access.
  std::string open(const void* address, unsigned devices);
  void close_all();

 private:
  Allocation* find_pages(std::uintptr_t address);
  std::string describe(std::uintptr_t address) const;

  struct Region {
    std::uintptr_t begin = 0, next = 0;
    std::size_t used = 0;
  };
  std::size_t size_;
  std::vector<Region> regions_;                        // of each device, then of pinned memory
  std::map<std::uintptr_t, Allocation> live_, freed_;  // by the first page
  std::vector<Allocation*> opened_;
};

}  // namespace towers::cuda_host
