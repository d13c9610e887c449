#include "cpu/backend.h"

#include <fstream>
#include <new>

#include "core/error.h"
#include "cpu/arithmetic.h"
#include "cpu/inference.h"
#include "cpu/machine.h"
#include "cpu/towers.h"

namespace towers::cpu {
namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

std::string counted(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void check_batch_size(int batch_size) {
  if (batch_size < 1) throw UsageError("--batch_size must be at least 1");
}

// Compiles with `make`; a lack of memory becomes an Error that says what to lower.
template <class Make>
auto compiled(std::size_t towers, int batch_size, Make make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    const std::string batch = counted(batch_size, "image");
    if (towers == 1)
      throw Error("not enough memory for a batch of " + batch + "; lower --batch_size");
    throw Error("not enough memory for " + std::to_string(towers) + " towers with a batch of " +
                batch + " each; lower --num_gpus" + (batch_size > 1 ? " or --batch_size" : ""));
  }
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const Options& options) : machine_(std::make_shared<Machine>(options)) {
    const std::string name = processor_name();
    for (std::size_t d = 0; d < machine_->devices(); ++d) {
      Device device;
      device.kind = DeviceKind::cpu;
      device.index = static_cast<int>(d);
      device.description = name;
      device.threads = machine_->pool(d).threads();
      devices_.push_back(device);
    }
    description_ = std::string("CPU, ") + hwy::TargetName(machine_->kernels().target()) + ", " +
                   counted(machine_->threads(), "thread");
    if (options.devices > 1) description_ += " on " + counted(options.devices, "device");
  }

  std::string description() const override { return description_; }
  const std::vector<Device>& devices() const override { return devices_; }

  std::string why_slow(const CompileOptions& options) const override {
    return cpu::why_slow(options);
  }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    const auto pages = std::make_shared<Pages>(bytes);
    return {pages, pages->data()};
  }

  std::unique_ptr<Towers> compile(const Net& net, const CompileOptions& options) override {
    choose_arithmetic(options);  // before any work
    check_batch_size(options.batch_size);
    if (options.device_of_tower.empty()) throw UsageError("--num_gpus must be at least 1");
    for (const int device : options.device_of_tower) check_device(device);
    const std::size_t towers = options.device_of_tower.size();
    return compiled(towers, options.batch_size, [&]() -> std::unique_ptr<Towers> {
      if (options.precision == Precision::fp64)
        return std::make_unique<CpuTowers<Fp64>>(machine_, net, options);
      return std::make_unique<CpuTowers<Fp32>>(machine_, net, options);
    });
  }

  std::unique_ptr<Inference> compile_inference(const Net& net, int batch_size, Precision precision,
                                               int device) override {
    choose_arithmetic({.precision = precision});
    check_batch_size(batch_size);
    check_device(device);
    return compiled(1, batch_size, [&]() -> std::unique_ptr<Inference> {
      if (precision == Precision::fp64)
        return std::make_unique<CpuInference<Fp64>>(machine_, net, batch_size, precision, device);
      return std::make_unique<CpuInference<Fp32>>(machine_, net, batch_size, precision, device);
    });
  }

 private:
  void check_device(int device) const {
    if (device < 0 || device >= static_cast<int>(devices_.size()))
      throw Error("there is no device /cpu:" + std::to_string(device) + "; the last one is " +
                  short_name(devices_.back()));
  }

  std::shared_ptr<Machine> machine_;
  std::vector<Device> devices_;
  std::string description_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Options& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace towers::cpu
