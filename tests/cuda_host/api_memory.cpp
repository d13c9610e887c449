// Memory, copies and fills.

#include <cstring>
#include <utility>

#include "tests/cuda_host/api.h"
#include "tests/cuda_host/capture.h"

namespace towers::cuda_host {
namespace {

bool is_pinned(const World& world, const void* pointer, std::size_t size) {
  const Allocation* a = world.memory.find(pointer, size);
  return a != nullptr && a->device == kPinned;
}

// The device, as a bit, whose memory this is.
unsigned device_bit(const World& world, const void* pointer) {
  const Allocation* a = world.memory.find(pointer, 1);
  return a == nullptr || a->device == kPinned ? 0 : 1u << a->device;
}

bool is_device(const World& world, const void* pointer, std::size_t size) {
  const Allocation* a = world.memory.find(pointer, size);
  return a != nullptr && a->device != kPinned;
}

cudaMemcpyKind kind_of(const World& world, const void* to, const void* from) {
  const bool to_device = is_device(world, to, 1), from_device = is_device(world, from, 1);
  if (to_device) return from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

// The copy happens when the stream gets there: host memory is read or written then, not before.
cudaError_t copy(const Call& world, void* to, const void* from, std::size_t size,
                 cudaMemcpyKind kind, CUstream_st& stream, bool waits) {
  if (size == 0) return cudaSuccess;
  if (kind == cudaMemcpyDefault) kind = kind_of(*world, to, from);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device != is_device(*world, to, size) || from_device != is_device(*world, from, size))
    return world.returns(cudaErrorInvalidValue);
  // What reaches into the stand-in's memory without lying in an allocation was freed or is too
  // long.
  const bool to_pinned = is_pinned(*world, to, size), from_pinned = is_pinned(*world, from, size);
  if ((!to_device && !to_pinned && world->memory.reserved(to)) ||
      (!from_device && !from_pinned && world->memory.reserved(from)))
    return world.returns(cudaErrorInvalidValue);
  const bool pageable = (!to_device && !to_pinned) || (!from_device && !from_pinned);
  if (pageable && stream.capture != nullptr) {
    stream.capture->invalid = true;
    return world.returns(cudaErrorStreamCaptureUnsupported);
  }
  // Nobody may count on what is at the destination from now on until the copy is done.
  if (!to_device && stream.capture == nullptr) std::memset(to, 0xff, size);
  Work work;
  work.devices = device_bit(*world, to) | device_bit(*world, from);
  work.run = [=] { std::memmove(to, from, size); };
  world->enqueue(stream, std::move(work));
  // Of pageable memory CUDA only says that the copy may be synchronous.
  if (pageable) ++world->host_calls.waits;
  if (pageable && world->random() % 2 == 0) waits = true;
  if (!waits) return cudaSuccess;
  world->run_until([&] { return stream.queue.empty(); });
  return world.returns(world->sticky);
}

cudaError_t fill(const Call& world, void* memory, int value, std::size_t size,
                 CUstream_st& stream) {
  if (size == 0) return cudaSuccess;
  if (!is_device(*world, memory, size)) return world.returns(cudaErrorInvalidValue);
  Work work;
  work.devices = device_bit(*world, memory);
  work.run = [=] { std::memset(memory, value, size); };
  world->enqueue(stream, std::move(work));
  return cudaSuccess;
}

cudaError_t release(void* memory, bool pinned) {
  const Call world;
  if (memory == nullptr) return cudaSuccess;
  if (world.refused()) return world.error();
  if (spoils_capture(*world)) return world.returns(cudaErrorStreamCaptureUnsupported);
  ++world->host_calls.allocations;
  const std::string wrong = world->memory.free(memory, pinned);
  if (wrong.empty()) return cudaSuccess;
  world->fault(cudaErrorIllegalAddress, wrong);
  return world.returns(cudaErrorInvalidValue);
}

}  // namespace
}  // namespace towers::cuda_host

using namespace towers::cuda_host;

cudaError_t cudaMalloc(void** memory, std::size_t size) {
  const Call world;
  *memory = nullptr;
  if (world.refused(current_device())) return world.error();
  if (world->settings.devices == 0) return world.returns(cudaErrorNoDevice);
  if (spoils_capture(*world)) return world.returns(cudaErrorStreamCaptureUnsupported);
  if (size == 0) return cudaSuccess;
  world->contexts |= 1u << current_device();
  ++world->host_calls.allocations;
  *memory = world->memory.allocate(current_device(), size);
  return world.returns(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaHostAlloc(void** memory, std::size_t size, unsigned) {
  const Call world;
  *memory = nullptr;
  if (world.refused(current_device())) return world.error();
  if (world->settings.devices == 0) return world.returns(cudaErrorNoDevice);
  if (spoils_capture(*world)) return world.returns(cudaErrorStreamCaptureUnsupported);
  if (size == 0) return cudaSuccess;
  world->contexts |= 1u << current_device();
  ++world->host_calls.allocations;
  *memory = world->memory.allocate(kPinned, size);
  return world.returns(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

// Neither waits for streams: what still uses the memory meets closed pages.
cudaError_t cudaFree(void* memory) {
  return release(memory, false);
}
cudaError_t cudaFreeHost(void* memory) {
  return release(memory, true);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Call world;
  if (world.refused(current_device())) return world.error();
  world->contexts |= 1u << current_device();
  *total = world->memory.size();
  *free = *total - world->memory.used(current_device());
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  const Call world;
  if (world.refused(current_device())) return world.error();
  if (spoils_capture(*world)) return world.returns(cudaErrorStreamCaptureUnsupported);
  return copy(world, to, from, size, kind, *world->stream(nullptr), true);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  const Call world;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (stream == nullptr) return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(stream->device)) return world.error();
  return copy(world, to, from, size, kind, *stream, false);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t size,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}

// Of device memory: returns before it is done, as CUDA's does.
cudaError_t cudaMemset(void* memory, int value, std::size_t size) {
  const Call world;
  if (world.refused(current_device())) return world.error();
  if (spoils_capture(*world)) return world.returns(cudaErrorStreamCaptureUnsupported);
  return fill(world, memory, value, size, *world->stream(nullptr));
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t size, cudaStream_t handle) {
  const Call world;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (stream == nullptr) return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(stream->device)) return world.error();
  return fill(world, memory, value, size, *stream);
}
