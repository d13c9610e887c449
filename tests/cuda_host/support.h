#pragma once
// What tests on the stand-in begin and end with.

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cuda/launch.h"
#include "cuda/runtime.h"
#include "tests/cuda_host/control.h"

namespace towers::cuda_host {

// Devices of its own for a test, which must leave nothing behind.
class Devices {
 public:
  explicit Devices(const Settings& settings = {}) { start(settings); }
  ~Devices() {
    const std::vector<std::string> found = finish();
    const bool expected = wanted_.empty()
                              ? found.empty()
                              : !found.empty() && found.front().find(wanted_) != std::string::npos;
    for (const std::string& fault : found) UNSCOPED_INFO(fault);
    INFO("expected: " << (wanted_.empty() ? "no fault" : wanted_));
    CHECK(expected);
  }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  // The test makes a mistake on purpose: its first fault has these words.
  void expect_fault(std::string words) { wanted_ = std::move(words); }

 private:
  std::string wanted_;
};

// Values in device memory, there and back.
template <class T>
std::vector<T> read(cuda::Stream& stream, const T* device, std::size_t count) {
  const std::shared_ptr<void> pinned = cuda::allocate_pinned(count * sizeof(T));
  cuda::copy_to_host(stream, pinned.get(), device, count * sizeof(T));
  stream.synchronize();
  const T* values = static_cast<const T*>(pinned.get());
  return {values, values + count};
}
template <class T>
void write(cuda::Stream& stream, T* device, const std::vector<T>& values) {
  const std::shared_ptr<void> pinned = cuda::allocate_pinned(values.size() * sizeof(T));
  std::copy(values.begin(), values.end(), static_cast<T*>(pinned.get()));
  cuda::copy_to_device(stream, device, pinned.get(), values.size() * sizeof(T));
  stream.synchronize();
}

}  // namespace towers::cuda_host
