// Devices and errors.

#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/cuda_host/api.h"
#include "tests/cuda_host/capture.h"

namespace towers::cuda_host {
namespace {

thread_local int device_in_use = 0;
thread_local cudaError_t last_error = cudaSuccess;

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDevicePointer, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
};

const ErrorText* text_of(cudaError_t error) {
  for (const ErrorText& row : kErrors)
    if (row.error == error) return &row;
  return nullptr;
}

}  // namespace

int current_device() {
  return device_in_use;
}

void fail_device(int device) {
  const Locked world;
  world->failed_devices |= 1u << device;
}

std::vector<int> take_contexts() {
  const Locked world;
  std::vector<int> devices;
  for (int device = 0; device < world->settings.devices; ++device)
    if ((world->contexts >> device & 1) != 0) devices.push_back(device);
  world->contexts = 0;
  return devices;
}

HostCalls take_host_calls() {
  const Locked world;
  return std::exchange(world->host_calls, {});
}

cudaError_t Call::returns(cudaError_t status) const {
  if (status != cudaSuccess) last_error = status;
  return status;
}

cudaError_t Call::misuse(const std::string& what) const {
  std::fprintf(stderr, "stand-in: %s that is not there was destroyed\n", what.c_str());
  world_->faults.push_back(what + " that is not there was destroyed");
  return returns(cudaErrorInvalidResourceHandle);
}

}  // namespace towers::cuda_host

using namespace towers::cuda_host;

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* row = text_of(error);
  return row == nullptr ? "unrecognized error code" : row->name;
}
const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* row = text_of(error);
  return row == nullptr ? "unrecognized error code" : row->text;
}

// A sticky error stays.
cudaError_t cudaPeekAtLastError() {
  const Call world;
  return world.refused() ? world->sticky : last_error;
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  const Call world;
  *count = world->settings.devices;
  return world.returns(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  *device = device_in_use;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const Call world;
  if (world->settings.devices == 0) return world.returns(cudaErrorNoDevice);
  if (device < 0 || device >= world->settings.devices) return world.returns(cudaErrorInvalidDevice);
  if (world->failed(device)) return world.error();
  device_in_use = device;
  world->contexts |= 1u << device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Call world;
  if (device < 0 || device >= world->settings.devices) return world.returns(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "stand-in GPU");
  for (char& byte : properties->uuid.bytes) byte = static_cast<char>(device);
  properties->totalGlobalMem = world->settings.memory;
  properties->major = world->settings.capability / 10;
  properties->minor = world->settings.capability % 10;
  properties->multiProcessorCount = 2;
  properties->pciBusID = device + 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  if (const cudaError_t e = cudaGetDeviceProperties(&properties, device); e != cudaSuccess)
    return e;
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      break;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  const Call world;
  if (device < 0 || device >= world->settings.devices) return world.returns(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<std::size_t>(size), "0000:%02x:00.0",
                static_cast<unsigned>(device + 1));
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const Call world;
  if (world.refused(device_in_use)) return world.error();
  if (spoils_capture(*world)) return world.returns(cudaErrorStreamCaptureUnsupported);
  ++world->host_calls.waits;
  const int device = device_in_use;
  world->run_until([&] {
    for (const auto& s : world->streams)
      if (s->device == device && !s->queue.empty()) return false;
    return true;
  });
  return world.returns(world->sticky);
}
