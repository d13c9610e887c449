// Streams, events and kernels.

#include <cuda_runtime.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "tests/cuda_host/api.h"
#include "tests/cuda_host/capture.h"
#include "tests/cuda_host/include/cuda/launch.h"

namespace towers::cuda_host {

cudaError_t launch_kernel(cudaStream_t handle, dim3 blocks, dim3 threads,
                          std::initializer_list<const volatile void*> pointers, Kernel kernel,
                          void** arguments) {
  const Call world;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (stream == nullptr || stream->device != current_device())
    return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(stream->device)) return world.error();
  const std::uint64_t count = std::uint64_t{threads.x} * threads.y * threads.z;
  if (count == 0 || count > 1024 || threads.z > 64 || blocks.x == 0 || blocks.x > 0x7fffffff ||
      blocks.y == 0 || blocks.y > 65535 || blocks.z == 0 || blocks.z > 65535)
    return world.returns(cudaErrorInvalidConfiguration);
  for (const volatile void* pointer : pointers) {
    if (pointer == nullptr || world->memory.reserved(const_cast<const void*>(pointer))) continue;
    world->fault(cudaErrorIllegalAddress, "a kernel was handed plain host memory");
    return world.returns(cudaErrorIllegalAddress);
  }
  Work work;
  work.run = kernel.bind(arguments);
  work.kernel = kernel.function;
  work.bind = std::move(kernel.bind);
  work.devices = 1u << stream->device;
  work.blocks = blocks;
  work.threads = threads;
  world->enqueue(*stream, std::move(work));
  return cudaSuccess;
}

}  // namespace towers::cuda_host

using namespace towers::cuda_host;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  const Call world;
  if (world.refused()) return world.error();
  if (world->settings.devices == 0) return world.returns(cudaErrorNoDevice);
  // A stream that waits for the default stream is not among what the stand-in knows.
  if (flags != cudaStreamNonBlocking) return world.returns(cudaErrorNotSupported);
  world->streams.push_back(std::make_unique<CUstream_st>());
  *stream = world->streams.back().get();
  world->contexts |= 1u << current_device();
  (*stream)->device = current_device();
  (*stream)->priority = world->random();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

// What is enqueued still runs.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const Call world;
  CUstream_st* stream = handle == nullptr ? nullptr : world->stream(handle);
  if (stream == nullptr) return world.misuse("a stream");
  if (stream->capture != nullptr) stream->capture->invalid = true;
  stream->destroyed = true;
  if (stream->queue.empty() || world->failed(stream->device))
    std::erase_if(world->streams, [stream](const auto& s) { return s.get() == stream; });
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const Call world;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (stream == nullptr) return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(stream->device)) return world.error();
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return world.returns(cudaErrorStreamCaptureUnsupported);
  }
  if (handle == nullptr && spoils_capture(*world))
    return world.returns(cudaErrorStreamCaptureImplicit);
  ++world->host_calls.waits;
  world->run_until([&] { return stream->queue.empty(); });
  return world.returns(world->sticky);
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const Call world;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (stream == nullptr) return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(stream->device)) return world.error();
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return world.returns(cudaErrorStreamCaptureUnsupported);
  }
  world->run_ahead();
  if (world.refused()) return world.error();
  return world.returns(stream->queue.empty() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  const Call world;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (stream == nullptr || !world->alive(event))
    return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(stream->device)) return world.error();
  if (event->capture == nullptr) {
    if (event->last == nullptr) return cudaSuccess;  // nothing was recorded
    if (stream->capture != nullptr) {
      stream->capture->invalid = true;
      return world.returns(cudaErrorStreamCaptureIsolation);
    }
    Work work;
    work.after = event->last;
    world->enqueue(*stream, std::move(work));
    return cudaSuccess;
  }
  if (event->capture->ended) return world.returns(cudaErrorCapturedEvent);
  if (stream->capture == nullptr) {  // it joins in; what it did before stays outside
    stream->capture = event->capture;
    stream->frontier = event->frontier;
    return cudaSuccess;
  }
  if (stream->capture != event->capture) {
    stream->capture->invalid = event->capture->invalid = true;
    return world.returns(cudaErrorStreamCaptureMerge);
  }
  for (const std::size_t node : event->frontier)
    if (std::find(stream->frontier.begin(), stream->frontier.end(), node) == stream->frontier.end())
      stream->frontier.push_back(node);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const Call world;
  if (world.refused()) return world.error();
  if (world->settings.devices == 0) return world.returns(cudaErrorNoDevice);
  *event = new CUevent_st;
  (*event)->device = current_device();
  world->events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const Call world;
  if (world.refused()) return world.error();
  if (!world->alive(from) || !world->alive(to) || !from->last || !to->last)
    return world.returns(cudaErrorInvalidResourceHandle);
  if (!from->last->done || !to->last->done) return world.returns(cudaErrorNotReady);
  *milliseconds = static_cast<float>(to->last->time - from->last->time);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call world;
  if (world->events.erase(event) == 0) return world.misuse("an event");
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const Call world;
  if (world.refused()) return world.error();
  CUstream_st* stream = world->stream(handle);
  if (stream == nullptr || !world->alive(event) || stream->device != event->device)
    return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(stream->device)) return world.error();
  event->capture = stream->capture;
  event->frontier = stream->frontier;
  if (stream->capture != nullptr) return cudaSuccess;
  event->last = std::make_shared<Happening>();
  Work work;
  work.marks = event->last;
  world->enqueue(*stream, std::move(work));
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Call world;
  if (world.refused()) return world.error();
  if (!world->alive(event)) return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(event->device)) return world.error();
  if (event->capture != nullptr) {
    event->capture->invalid = true;
    return world.returns(cudaErrorCapturedEvent);
  }
  if (event->last == nullptr) return cudaSuccess;
  ++world->host_calls.waits;
  world->run_until([last = event->last] { return last->done; });
  return world.returns(world->sticky);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call world;
  if (world.refused()) return world.error();
  if (!world->alive(event)) return world.returns(cudaErrorInvalidResourceHandle);
  if (world.refused(event->device)) return world.error();
  if (event->capture != nullptr) {
    event->capture->invalid = true;
    return world.returns(cudaErrorCapturedEvent);
  }
  world->run_ahead();
  if (world.refused()) return world.error();
  const bool done = event->last == nullptr || event->last->done;
  return world.returns(done ? cudaSuccess : cudaErrorNotReady);
}
