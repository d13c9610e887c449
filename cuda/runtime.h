#pragma once
// Owners for the CUDA runtime's handles, one stream one owner. What the module calls of the runtime
// library goes through this file and launch.h, but for listing devices and timing (stopwatch.h).

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace towers::cuda {

// Throws Error with the call, the device, what CUDA says and, where it is known, what to do. Out of
// memory has words of its own (DeviceMemory). Without `device`: the one in use.
void check(cudaError_t status, const char* call);
void check(cudaError_t status, const char* call, int device);
#define TOWERS_CUDA(call) ::towers::cuda::check((call), #call)
#define TOWERS_CUDA_OF(device, call) ::towers::cuda::check((call), #call, device)

// Makes `device` (a CUDA ordinal) the current one and restores the former one.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int former_ = 0;
};

class Event;

// A stream that does not synchronise with the default stream.
class Stream {
 public:
  explicit Stream(int device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int device() const { return device_; }
  cudaStream_t get() const { return stream_; }
  void wait(const Event& event);  // what is enqueued from now on starts after the event
  void synchronize();             // the host waits
  bool done();                    // all that was enqueued; does not wait

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(int device);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  cudaEvent_t get() const { return event_; }
  void record(Stream& stream);
  void synchronize();  // the host waits; at once where nothing was recorded
  bool done();         // does not wait

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

// Zeroed memory of one device, freed in the end, when all work of the device is done: compile
// allocates, steps do not.
class DeviceMemory {
 public:
  explicit DeviceMemory(int device) : device_(device) {}
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) = default;
  DeviceMemory& operator=(DeviceMemory&&) = delete;

  int device() const { return device_; }
  // Aligned to 256 bytes. Where memory is short, an Error with what was asked for, what is free
  // and in all, the device, and what to lower.
  template <class T>
  std::span<T> allocate(std::size_t count) {
    return {static_cast<T*>(bytes(count * sizeof(T))), count};
  }

 private:
  void* bytes(std::size_t count);

  int device_;
  std::vector<void*> allocations_;
};

// Zeroed host memory that every device copies from and to without a stop. It does not wait for
// copies when it goes: they have to be done.
std::shared_ptr<void> allocate_pinned(std::size_t bytes);

// Copies that are enqueued. From or to host memory that is not pinned the call itself may wait.
void copy_to_device(Stream& stream, void* device, const void* host, std::size_t bytes);
void copy_to_host(Stream& stream, void* host, const void* device, std::size_t bytes);
void copy_on_device(Stream& stream, void* to, const void* from, std::size_t bytes);

template <class T>
void copy_to_device(Stream& stream, std::span<T> device, std::span<const T> host) {
  copy_to_device(stream, device.data(), host.data(), host.size_bytes());
}

// Work recorded once and started as a whole.
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(Graph&& other) noexcept { *this = std::move(other); }
  Graph& operator=(Graph&& other) noexcept {
    std::swap(recorded_, other.recorded_);
    std::swap(graph_, other.graph_);
    std::swap(kernel_, other.kernel_);
    return *this;
  }

  // Records what `enqueue` puts on `stream` instead of running it.
  static Graph capture(Stream& stream, const std::function<void()>& enqueue);
  void launch(Stream& stream);
  // Gives the one launch of `kernel` among the work other arguments; launches of the graph until
  // now keep theirs. False where CUDA does not tell which part of the work that is.
  template <class... Parameters>
  bool set_arguments(void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
    return set_arguments(reinterpret_cast<const void*>(kernel), pointers);
  }

 private:
  struct Kernel {
    const void* function = nullptr;
    cudaGraphNode_t node = nullptr;  // null: CUDA does not tell
    cudaKernelNodeParams parameters{};
  };
  bool set_arguments(const void* kernel, void** arguments);
  void find(const void* kernel);

  cudaGraph_t recorded_ = nullptr;  // its nodes are the names of graph_'s
  cudaGraphExec_t graph_ = nullptr;
  Kernel kernel_;  // whose arguments were set
};

}  // namespace towers::cuda
