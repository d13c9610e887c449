// A module with made-up GPUs that compute nothing: what the program does around them can be seen.
// TOWERS_FAKE_GPUS: how many (2 without it), or what to throw: "error", "memory", "number".
// TOWERS_FAKE_LOST: the rank, of several, whose third step fails.

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "core/communication_thread.h"
#include "core/error.h"
#include "cuda/backend.h"

namespace towers::cuda {
namespace {

constexpr std::uint64_t kGigabyte = 1000000000;

// Towers that leave all values as they are.
class FakeTowers final : public Towers {
 public:
  FakeTowers(const Net& net, const CompileOptions& options)
      : layout_(net), variables_(layout_.size()), averages_(layout_.size()), activations_(64) {
    const std::size_t ranks =
        options.ranks ? static_cast<std::size_t>(options.ranks->ranks()) : std::size_t{1};
    report_.towers.resize(options.device_of_tower.size() * ranks);
    const char* lost = std::getenv("TOWERS_FAKE_LOST");
    lost_ = lost != nullptr && options.ranks && std::atoi(lost) == options.ranks->rank();
    for (Losses& losses : report_.towers) {
      losses.total = losses.cross_entropy = 1;
      losses.weight_losses.resize(layout_.variables().size());
    }
  }
  void compute_gradients(std::span<const Batch>, bool) override {}
  void average_gradients() override {}
  void apply_gradients(float, float) override {
    if (++steps_ == 3 && lost_) throw Error("the fake GPU is lost");
  }
  const StepReport& report() override { return report_; }
  bool diverged() override { return false; }
  void read_variables(std::span<float> out) override { copy(variables_, out); }
  void read_moving_averages(std::span<float> out) override { copy(averages_, out); }
  void read_gradients(std::span<float> out) override { copy(averages_, out); }
  void write_variables(std::span<const float> variables,
                       std::span<const float> moving_averages) override {
    variables_.assign(variables.begin(), variables.end());
    averages_.assign(moving_averages.begin(), moving_averages.end());
  }
  std::span<const float> activations(const std::string&) override { return activations_; }

 private:
  static void copy(const std::vector<float>& from, std::span<float> to) {
    std::copy(from.begin(), from.end(), to.begin());
  }
  VariableLayout layout_;
  std::vector<float> variables_, averages_, activations_;
  StepReport report_;
  int steps_ = 0;
  bool lost_ = false;
};

class FakeBackend final : public Backend {
 public:
  FakeBackend(int gpus, bool allow_tf32) : allow_tf32_(allow_tf32) {
    for (int i = 0; i < gpus; ++i) {
      Device device;
      device.kind = DeviceKind::gpu;
      device.index = i;
      device.description = "Fake GPU";
      device.compute_capability = "9.0";
      device.pci_bus_id = "00000000:4" + std::to_string(i) + ":00.0";
      device.uuid = "GPU-fake-" + std::to_string(i);
      device.memory_free = 79 * kGigabyte;
      device.memory_total = 80 * kGigabyte;
      devices_.push_back(device);
    }
  }
  std::string description() const override {
    return std::to_string(devices_.size()) + " fake GPUs" + (allow_tf32_ ? ", TF32" : "");
  }
  const std::vector<Device>& devices() const override { return devices_; }
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    return {std::calloc(bytes, 1), std::free};
  }
  std::unique_ptr<Towers> compile(const Net& net, const CompileOptions& options) override {
    if (options.ranks) {
      std::string line = "fake: rank " + std::to_string(options.ranks->rank()) + " on GPUs";
      for (const int device : options.device_of_tower) line += " " + std::to_string(device);
      std::fputs((line + "\n").c_str(), stderr);
    }
    return std::make_unique<FakeTowers>(net, options);
  }
  std::unique_ptr<Inference> compile_inference(const Net&, int, Precision, int) override {
    throw Error("the fake GPU is out of memory; lower --batch_size");
  }

 private:
  bool allow_tf32_;
  std::vector<Device> devices_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options) {
  const char* text = std::getenv("TOWERS_FAKE_GPUS");
  const std::string wish = text == nullptr ? "2" : text;
  if (wish == "error") throw Error("the fake driver is too old");
  if (wish == "memory") throw std::bad_alloc();
  if (wish == "number") throw 7;
  return std::make_unique<FakeBackend>(std::stoi(wish), options.allow_tf32);
}

}  // namespace towers::cuda
