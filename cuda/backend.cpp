#include "cuda/backend.h"

#include <utility>

#include "core/error.h"
#include "cuda/devices.h"
#include "cuda/engine_cache.h"
#include "cuda/inference.h"
#include "cuda/max_pool_math.h"
#include "cuda/precision.h"
#include "cuda/runtime.h"
#include "cuda/storage.h"
#include "cuda/towers.h"

namespace towers::cuda {
namespace {

void check_net(const Net& net) {
  if (net.layers.size() < 2) throw Error("a net of no layers but the loss cannot run on a GPU");
  for (const Layer& layer : net.layers)
    if (const auto* pool = std::get_if<MaxPool>(&layer.op); pool && pool->size > kLargestPoolSize)
      throw Error("max pooling over " + std::to_string(pool->size) +
                  " rows is not available on GPUs; the largest window is " +
                  std::to_string(kLargestPoolSize));
}

void check_convolution(const std::string& convolution) {
  if (convolution != "auto" && convolution != "direct")
    throw UsageError("--convolution=" + convolution +
                     " is for CPUs; on GPUs there is auto (cuDNN) and direct");
}

void check_batch_size(int batch_size) {
  if (batch_size < 1) throw UsageError("--batch_size must be at least 1");
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const BackendOptions& options)
      : allow_tf32_(options.allow_tf32),
        warning_(options.warning),
        engines_(engine_cache_file(), options.debug, options.warning),
        devices_(list_devices()) {
    if (devices_.empty()) throw Error("no CUDA device is visible");
    description_ = std::to_string(devices_.size()) + (devices_.size() == 1 ? " GPU, " : " GPUs, ") +
                   devices_.front().description;
  }

  std::string description() const override { return description_; }
  const std::vector<Device>& devices() const override { return devices_; }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return allocate_pinned(bytes); }
  bool makes_input() const override { return true; }

  std::unique_ptr<Towers> compile(const Net& net, const CompileOptions& options) override {
    check_net(net);
    check_convolution(options.convolution);
    check_batch_size(options.batch_size);
    if (options.device_of_tower.empty()) throw UsageError("--num_gpus must be at least 1");
    for (const int device : options.device_of_tower) check_device(device, options.precision);
    choose(options.device_of_tower.front());
    return with_storage(options.precision, [&](auto storage) -> std::unique_ptr<Towers> {
      auto towers = std::make_unique<CudaTowers<typename decltype(storage)::type>>(
          net, options, allow_tf32_, &engines_);
      if (!towers->captures_updates()) tell_of_slow_updates();
      return towers;
    });
  }

  std::unique_ptr<Inference> compile_inference(const Net& net, int batch_size, Precision precision,
                                               int device) override {
    check_net(net);
    check_batch_size(batch_size);
    check_device(device, precision);
    choose(device);
    return with_storage(precision, [&](auto storage) -> std::unique_ptr<Inference> {
      return std::make_unique<CudaInference<typename decltype(storage)::type>>(
          net, batch_size, device, allow_tf32_, &engines_);
    });
  }

 private:
  // For what is asked of no GPU in particular: pinned memory, and what a DeviceGuard goes back to.
  // It makes a context, hundreds of MiB, so it must not be a GPU on which nothing else runs.
  static void choose(int device) { TOWERS_CUDA(cudaSetDevice(device)); }

  void tell_of_slow_updates() {
    if (std::exchange(told_, true) || warning_ == nullptr) return;
    warning_(
        "steps on GPUs take some microseconds longer than they need: this driver does not tell "
        "which part of a captured graph the update is (cudaGraphKernelNodeGetParams), so each is "
        "enqueued by itself; a newer NVIDIA driver may");
  }
  void check_device(int device, Precision precision) const {
    if (device < 0 || device >= static_cast<int>(devices_.size()))
      throw Error("there is no device /gpu:" + std::to_string(device) + "; the last one is " +
                  short_name(devices_.back()));
    check_precision(precision, devices_[static_cast<std::size_t>(device)]);
  }

  bool allow_tf32_;
  void (*warning_)(const std::string& line);
  bool told_ = false;
  EngineCache engines_;
  std::vector<Device> devices_;  // index: CUDA ordinal
  std::string description_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options) {
  return std::make_unique<CudaBackend>(options);
}

}  // namespace towers::cuda
