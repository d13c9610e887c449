#include "tests/cuda_host/memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace towers::cuda_host {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kRegion = std::size_t{64} << 30;  // addresses alone, not memory
constexpr int kRubbish = 0xff;                          // NaN as a float, -1 as a number

std::size_t rounded(std::size_t size, std::size_t to) {
  return (size + to - 1) / to * to;
}

void protect(std::uintptr_t begin, std::size_t size, int protection) {
  if (::mprotect(reinterpret_cast<void*>(begin), size, protection) == 0) return;
  std::perror("stand-in: mprotect");
  std::abort();
}

std::string hex(std::uintptr_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "%#zx", static_cast<std::size_t>(address));
  return text;
}

std::string name(const Allocation& a) {
  return "allocation of " + std::to_string(a.size) + " bytes at " + hex(a.begin) +
         (a.device == kPinned ? " (pinned)" : " of GPU " + std::to_string(a.device));
}

const unsigned char* bytes_at(std::uintptr_t address) {
  return reinterpret_cast<const unsigned char*>(address);
}

}  // namespace

Memory::Memory(int devices, std::size_t size) : size_(size) {
  for (int i = 0; i <= devices; ++i) {
    void* begin =
        ::mmap(nullptr, kRegion, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) {
      std::perror("stand-in: mmap");
      std::abort();
    }
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    regions_.push_back({address, address, 0});
  }
}

Memory::~Memory() {
  for (const Region& region : regions_) ::munmap(reinterpret_cast<void*>(region.begin), kRegion);
}

void* Memory::allocate(int device, std::size_t size) {
  const bool pinned = device == kPinned;
  Region& region = pinned ? regions_.back() : regions_[static_cast<std::size_t>(device)];
  if (size > kRegion / 2) return nullptr;
  const std::size_t pages_size = rounded(size, kPage);
  if (!pinned && region.used + pages_size > size_) return nullptr;
  if (region.next - region.begin + pages_size + 2 * kPage > kRegion) {
    std::fputs("stand-in: out of addresses; start anew more often\n", stderr);
    std::abort();
  }
  Allocation a;
  a.size = size;
  a.device = device;
  a.pages = region.next + kPage;  // behind a page that stays closed
  a.pages_size = pages_size;
  a.begin = a.pages + pages_size - rounded(size, kAlignment);  // its end meets the next such page
  a.open = pinned;
  region.next = a.pages + pages_size;
  region.used += pages_size;
  protect(a.pages, pages_size, PROT_READ | PROT_WRITE);
  std::memset(reinterpret_cast<void*>(a.pages), kRubbish, pages_size);
  if (!pinned) protect(a.pages, pages_size, PROT_NONE);
  live_[a.pages] = a;
  return reinterpret_cast<void*>(a.begin);
}

std::string Memory::free(void* pointer, bool pinned) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Allocation* a = find_pages(address);
  if (a == nullptr || a->begin != address)
    return "freed twice or never allocated: " + describe(address);
  if ((a->device == kPinned) != pinned) return "freed as the wrong kind of memory: " + name(*a);
  // Up to 255 bytes on the page before the allocation and after it are nobody's.
  std::string fault;
  protect(a->pages, a->pages_size, PROT_READ);
  for (std::uintptr_t p = a->pages; p < a->pages + a->pages_size; ++p) {
    if (p == a->begin) p += a->size;
    if (p < a->pages + a->pages_size && *bytes_at(p) != kRubbish)
      fault = "written outside of the " + name(*a) + ", at " + hex(p);
  }
  // A fresh mapping gives the memory back, and one region again to the kernel's list of them.
  ::mmap(reinterpret_cast<void*>(a->pages), a->pages_size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  Region& region = pinned ? regions_.back() : regions_[static_cast<std::size_t>(a->device)];
  region.used -= a->pages_size;
  std::erase(opened_, a);
  freed_[a->pages] = *a;
  live_.erase(a->pages);
  return fault;
}

std::size_t Memory::used(int device) const {
  return regions_[static_cast<std::size_t>(device)].used;
}

Allocation* Memory::find_pages(std::uintptr_t address) {
  auto next = live_.upper_bound(address);
  if (next == live_.begin()) return nullptr;
  Allocation& a = std::prev(next)->second;
  return address < a.pages + a.pages_size ? &a : nullptr;
}

const Allocation* Memory::find(const void* pointer, std::size_t size) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const Allocation* a = const_cast<Memory*>(this)->find_pages(address);
  if (a == nullptr || address < a->begin || address + size > a->begin + a->size) return nullptr;
  return a;
}

bool Memory::reserved(const void* pointer) const {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  for (const Region& region : regions_)
    if (address >= region.begin && address < region.begin + kRegion) return true;
  return false;
}

std::vector<std::string> Memory::leaks() const {
  std::vector<std::string> all;
  for (const auto& [page, a] : live_) all.push_back("never freed: " + name(a));
  return all;
}

// What lies at or before an address where nothing may be touched.
std::string Memory::describe(std::uintptr_t address) const {
  if (!reserved(reinterpret_cast<const void*>(address)))
    return hex(address) + ", plain host memory";
  for (const auto* map : {&live_, &freed_}) {
    const std::string kind = map == &freed_ ? "freed " : "";
    const auto next = map->upper_bound(address);
    if (next != map->end() && address + kPage >= next->first)
      return hex(address) + ", before the " + kind + name(next->second);
    if (next == map->begin()) continue;
    const Allocation& a = std::prev(next)->second;
    if (address >= a.pages + a.pages_size + kPage) continue;
    const std::string place = address < a.begin            ? "before the "
                              : address < a.begin + a.size ? "in the "
                                                           : "after the end of the ";
    return hex(address) + ", " + place + kind + name(a);
  }
  return hex(address) + ", in no allocation";
}

std::string Memory::open(const void* pointer, unsigned devices) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Allocation* a = find_pages(address);
  if (a == nullptr || a->open) return "illegal access to " + describe(address);
  if ((devices >> a->device & 1) == 0) return "work of another device touches " + describe(address);
  protect(a->pages, a->pages_size, PROT_READ | PROT_WRITE);
  a->open = true;
  opened_.push_back(a);
  return {};
}

void Memory::close_all() {
  for (Allocation* a : opened_) {
    protect(a->pages, a->pages_size, PROT_NONE);
    a->open = false;
  }
  opened_.clear();
}

}  // namespace towers::cuda_host
