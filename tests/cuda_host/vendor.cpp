#include "tests/cuda_host/vendor.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "tests/cuda_host/world.h"

namespace towers::cuda_host {
namespace {

void spoil(Tensor workspace) {
  if (workspace.bytes > 0) std::memset(const_cast<void*>(workspace.data), 0xff, workspace.bytes);
}

void check(const World& world, const std::string& name, Tensor tensor, int device,
           std::size_t alignment) {
  if (tensor.bytes == 0) return;
  const Allocation* a = world.memory.find(tensor.data, tensor.bytes);
  if (a == nullptr || a->device != device)
    throw std::logic_error(name + ": " + std::to_string(tensor.bytes) +
                           " bytes do not lie in memory of GPU " + std::to_string(device));
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % alignment != 0)
    throw std::logic_error(name + ": memory is not aligned to " + std::to_string(alignment));
}

}  // namespace

void enqueue_operation(cuda::Stream& stream, const std::string& name,
                       std::initializer_list<Tensor> tensors, Tensor workspace,
                       std::function<void()> run) {
  const Locked world;
  for (const Tensor& tensor : tensors) check(*world, name, tensor, stream.device(), 16);
  check(*world, name, workspace, stream.device(), 256);
  Work work;
  work.devices = 1u << stream.device();
  work.vendor = true;
  work.run = [workspace, run = std::move(run)] {
    spoil(workspace);
    run();
    spoil(workspace);
  };
  world->enqueue(*world->stream(stream.get()), std::move(work));
}

}  // namespace towers::cuda_host
