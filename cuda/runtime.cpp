#include "cuda/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "core/error.h"

namespace towers::cuda {
namespace {

// "GPU 0 (NVIDIA H200)"; the name is left out where even that cannot be asked.
std::string name_of(int device) {
  cudaDeviceProp properties;
  const std::string name = "GPU " + std::to_string(device);
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return name;
  return name + " (" + properties.name + ")";
}

std::string device_in_use() {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess ? name_of(device) : "the GPU";
}

std::string advice(cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver:
      return "; update the NVIDIA driver, or use --device=cpu";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "; this build has no code for that GPU: build on this machine, or update the driver";
    case cudaErrorDevicesUnavailable:
      return "; another process holds it for itself alone: see nvidia-smi";
    case cudaErrorMemoryAllocation:
      return "; lower --batch_size, or see nvidia-smi for what else uses it";
    default:
      return "";
  }
}

std::string mebibytes(std::size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

// Of a query's answer. "Not ready" is kept like an error, for which the next who looks takes it.
bool is_done(cudaError_t status, const char* query, int device) {
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(status, query, device);
  return true;
}

[[noreturn]] void fail(cudaError_t status, std::string_view call, const std::string& device) {
  cudaGetLastError();  // an error that does not stay is not to be found again by the next call
  throw Error(std::string(call.substr(0, call.find('('))) + " failed on " + device + ": " +
              cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")" + advice(status));
}

}  // namespace

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) fail(status, call, device_in_use());
}
void check(cudaError_t status, const char* call, int device) {
  if (status != cudaSuccess) fail(status, call, name_of(device));
}

DeviceGuard::DeviceGuard(int device) {
  TOWERS_CUDA(cudaGetDevice(&former_));
  TOWERS_CUDA_OF(device, cudaSetDevice(device));
}
DeviceGuard::~DeviceGuard() {
  cudaSetDevice(former_);
}

Stream::Stream(int device) : device_(device) {
  const DeviceGuard guard(device);
  TOWERS_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}
Stream::~Stream() {
  cudaStreamDestroy(stream_);
}
void Stream::wait(const Event& event) {
  TOWERS_CUDA_OF(device_, cudaStreamWaitEvent(stream_, event.get(), 0));
}
void Stream::synchronize() {
  TOWERS_CUDA_OF(device_, cudaStreamSynchronize(stream_));
}
bool Stream::done() {
  return is_done(cudaStreamQuery(stream_), "cudaStreamQuery", device_);
}

Event::Event(int device) : device_(device) {
  const DeviceGuard guard(device);
  TOWERS_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}
Event::~Event() {
  cudaEventDestroy(event_);
}
void Event::record(Stream& stream) {
  TOWERS_CUDA_OF(device_, cudaEventRecord(event_, stream.get()));
}
void Event::synchronize() {
  TOWERS_CUDA_OF(device_, cudaEventSynchronize(event_));
}
bool Event::done() {
  return is_done(cudaEventQuery(event_), "cudaEventQuery", device_);
}

// An error may end a compilation with work under way, and CUDA does not promise that freeing waits.
DeviceMemory::~DeviceMemory() {
  if (allocations_.empty()) return;
  int former = device_;
  cudaGetDevice(&former);
  cudaSetDevice(device_);
  cudaDeviceSynchronize();
  for (void* allocation : allocations_) cudaFree(allocation);
  cudaSetDevice(former);
}

void* DeviceMemory::bytes(std::size_t count) {
  if (count == 0) return nullptr;
  const DeviceGuard guard(device_);
  allocations_.push_back(nullptr);  // room first, so that nothing is lost if there is none
  void*& memory = allocations_.back();
  const cudaError_t status = cudaMalloc(&memory, count);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    TOWERS_CUDA(cudaMemGetInfo(&free, &total));
    throw Error("out of memory on " + device_in_use() + ": " + mebibytes(count) + " more wanted, " +
                mebibytes(free) + " of " + mebibytes(total) +
                " free; lower --batch_size, or run fewer towers on each GPU (--num_gpus)");
  }
  check(status, "cudaMalloc");
  TOWERS_CUDA(cudaMemset(memory, 0, count));
  // The fill is still under way on the default stream, for which our streams do not wait.
  TOWERS_CUDA(cudaStreamSynchronize(nullptr));
  return memory;
}

std::shared_ptr<void> allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status =
      cudaHostAlloc(&memory, std::max(bytes, std::size_t{1}), cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw Error("no " + mebibytes(bytes) +
                " of pinned host memory to be had for batches; lower --batch_size, or free memory");
  }
  check(status, "cudaHostAlloc");
  std::memset(memory, 0, bytes);
  return {memory, [](void* pointer) { cudaFreeHost(pointer); }};
}

void copy_to_device(Stream& stream, void* device, const void* host, std::size_t bytes) {
  TOWERS_CUDA_OF(stream.device(),
                 cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream.get()));
}
void copy_to_host(Stream& stream, void* host, const void* device, std::size_t bytes) {
  TOWERS_CUDA_OF(stream.device(),
                 cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream.get()));
}
void copy_on_device(Stream& stream, void* to, const void* from, std::size_t bytes) {
  TOWERS_CUDA_OF(stream.device(),
                 cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream.get()));
}

Graph Graph::capture(Stream& stream, const std::function<void()>& enqueue) {
  const DeviceGuard guard(stream.device());
  // Other threads may allocate meanwhile; this one must not.
  TOWERS_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  cudaGraph_t recorded = nullptr;
  try {
    enqueue();
  } catch (...) {
    cudaStreamEndCapture(stream.get(), &recorded);
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    cudaGetLastError();
    throw;
  }
  TOWERS_CUDA(cudaStreamEndCapture(stream.get(), &recorded));
  Graph graph;
  graph.recorded_ = recorded;
  TOWERS_CUDA(cudaGraphInstantiate(&graph.graph_, recorded, 0));
  return graph;
}

Graph::~Graph() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  if (recorded_ != nullptr) cudaGraphDestroy(recorded_);
}

void Graph::find(const void* kernel) {
  kernel_ = {};
  kernel_.function = kernel;
  std::size_t count = 0;
  TOWERS_CUDA(cudaGraphGetNodes(recorded_, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  TOWERS_CUDA(cudaGraphGetNodes(recorded_, nodes.data(), &count));
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    TOWERS_CUDA(cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeKernel) continue;
    // It cannot tell which the kernels of some libraries are.
    if (cudaGraphKernelNodeGetParams(node, &kernel_.parameters) != cudaSuccess)
      cudaGetLastError();
    else if (kernel_.parameters.func == kernel)
      kernel_.node = node;
    if (kernel_.node != nullptr) return;
  }
}

bool Graph::set_arguments(const void* kernel, void** arguments) {
  if (kernel_.function != kernel) find(kernel);
  if (kernel_.node == nullptr) return false;
  kernel_.parameters.kernelParams = arguments;
  kernel_.parameters.extra = nullptr;
  TOWERS_CUDA(cudaGraphExecKernelNodeSetParams(graph_, kernel_.node, &kernel_.parameters));
  return true;
}

void Graph::launch(Stream& stream) {
  const DeviceGuard guard(stream.device());
  TOWERS_CUDA(cudaGraphLaunch(graph_, stream.get()));
}

}  // namespace towers::cuda
