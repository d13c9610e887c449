#pragma once
// A device of the stand-in with a stream and memory, for tests of single kernels. In the end it
// tells of any access that was out of bounds.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "cuda/runtime.h"
#include "tests/cuda_host/support.h"
#include "tests/reference/formula.h"

namespace towers::cuda::test {

class TestDevice {
 public:
  Stream& stream() { return stream_; }

  // Copies of values on the device; `shift` values of another allocation lie before them, so that
  // they are not aligned.
  template <class T>
  T* put(const std::vector<T>& values, std::size_t shift = 0) {
    T* const device = room<T>(values.size(), shift);
    if (values.empty()) return device;
    const std::shared_ptr<void> host = allocate_pinned(values.size() * sizeof(T));
    std::memcpy(host.get(), values.data(), values.size() * sizeof(T));
    copy_to_device(stream_, device, host.get(), values.size() * sizeof(T));
    stream_.synchronize();
    return device;
  }
  // `count` values that a kernel is to write: what it leaves out shows.
  template <class T>
  T* room(std::size_t count, std::size_t shift = 0) {
    return memory_.allocate<T>(count + shift).data() + shift;
  }
  template <class T>
  std::vector<T> get(const T* device, std::size_t count) {
    std::vector<T> values(count);
    if (count == 0) return values;
    const std::shared_ptr<void> host = allocate_pinned(count * sizeof(T));
    copy_to_host(stream_, host.get(), device, count * sizeof(T));
    stream_.synchronize();
    std::memcpy(values.data(), host.get(), count * sizeof(T));
    return values;
  }

 private:
  cuda_host::Devices devices_;
  Stream stream_{0};
  DeviceMemory memory_{0};
};

inline std::vector<float> values_of(std::size_t count, std::uint32_t stream, float scale = 1) {
  return reference::formula(count, stream, scale);
}

// Equal bits, NaN included.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace towers::cuda::test
