#pragma once
// What the stand-ins for vendors' libraries share: operations enqueued as one piece of work, whose
// tensors are checked when they are handed over.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "cuda/runtime.h"
#include "cuda/storage.h"

namespace towers::cuda_host {

struct Tensor {
  const void* data = nullptr;
  std::size_t bytes = 0;
};
template <class T>
Tensor values(const T* data, std::size_t count) {
  return {data, count * sizeof(T)};
}
template <class... Factors>
std::size_t product(Factors... factors) {
  return (static_cast<std::size_t>(factors) * ...);
}

// What an operation reads, in the type that it sums in.
template <class T>
class Widened {
 public:
  Widened(const T* from, std::size_t count) : from_(from) {
    if constexpr (cuda::kNarrow<T>)
      std::transform(from, from + count, std::back_inserter(wide_),
                     [](T value) { return cuda::widen(value); });
  }
  const cuda::Wide<T>* data() const {
    if constexpr (cuda::kNarrow<T>)
      return wide_.data();
    else
      return from_;
  }

 private:
  const T* from_;
  std::vector<cuda::Wide<T>> wide_;
};

// What it writes, rounded in the end.
template <class T>
class Rounded {
 public:
  Rounded(T* to, std::size_t count) : to_(to), wide_(cuda::kNarrow<T> ? count : 0) {}
  ~Rounded() {
    if constexpr (cuda::kNarrow<T>)
      std::transform(wide_.begin(), wide_.end(), to_,
                     [](cuda::Wide<T> value) { return cuda::narrow<T>(value); });
  }
  Rounded(const Rounded&) = delete;
  Rounded& operator=(const Rounded&) = delete;
  cuda::Wide<T>* data() {
    if constexpr (cuda::kNarrow<T>)
      return wide_.data();
    else
      return to_;
  }

 private:
  T* to_;
  std::vector<cuda::Wide<T>> wide_;
};

// Enqueues `run`. Throws std::logic_error where a tensor does not lie in one allocation of the
// stream's device or is not aligned to 16 bytes, or where the workspace is not or is not aligned to
// 256. The workspace is spoilt before and after.
void enqueue_operation(cuda::Stream& stream, const std::string& name,
                       std::initializer_list<Tensor> tensors, Tensor workspace,
                       std::function<void()> run);

}  // namespace towers::cuda_host
