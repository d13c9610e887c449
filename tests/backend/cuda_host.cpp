// The CUDA module's rows of the suite where there is no GPU: its own code on stand-in devices
// (tests/cuda_host), with several orders of events.

#include <catch2/catch.hpp>
#include <utility>

#include "cuda/backend.h"
#include "tests/backend/gpus.h"
#include "tests/backend/under_test.h"
#include "tests/cuda_host/control.h"

namespace towers::test {
namespace {

std::vector<std::string> g_suite_warnings;

// The module's backend on new devices; in the end nothing may be left of it.
class CheckedBackend final : public Backend {
 public:
  explicit CheckedBackend(const cuda_host::Settings& settings) {
    cuda_host::start(settings);
    backend_ = cuda::make_cuda_backend(
        {.warning = [](const std::string& line) { g_suite_warnings.push_back(line); }});
  }
  ~CheckedBackend() override {
    backend_ = nullptr;
    for (const std::string& fault : cuda_host::finish()) FAIL_CHECK(fault);
  }

  std::string description() const override { return backend_->description(); }
  const std::vector<Device>& devices() const override { return backend_->devices(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return backend_->allocate(bytes); }
  bool makes_input() const override { return backend_->makes_input(); }
  std::unique_ptr<Towers> compile(const Net& net, const CompileOptions& options) override {
    return backend_->compile(net, options);
  }
  std::unique_ptr<Inference> compile_inference(const Net& net, int batch_size, Precision precision,
                                               int device) override {
    return backend_->compile_inference(net, batch_size, precision, device);
  }

 private:
  std::unique_ptr<Backend> backend_;
};

}  // namespace

BackendList backends_under_test() {
  BackendList list;
  const auto add = [&](int devices, std::uint64_t seed, const std::string& convolution) {
    BackendUnderTest row;
    row.name = std::to_string(devices) + " stand-in GPUs, convolution " + convolution + ", seed " +
               std::to_string(seed);
    const cuda_host::Settings settings{
        .devices = devices, .memory = std::size_t{4} << 30, .seed = seed};
    row.make = [settings] { return std::make_unique<CheckedBackend>(settings); };
    row.options.convolution = convolution;
    list.backends.push_back(row);
  };
  add(1, 1, "auto");
  list.backends.front().thorough = true;
  add(1, 2, "direct");
  add(2, 3, "auto");
  add(2, 4, "direct");
  add(4, 5, "auto");
  return list;
}

GpusUnderTest gpus_under_test() {
  return {{1, 2, 4},
          [](int count, std::uint64_t seed) {
            return std::make_shared<CheckedBackend>(cuda_host::Settings{
                .devices = count, .memory = std::size_t{4} << 30, .seed = seed});
          },
          [] { return std::exchange(g_suite_warnings, {}); },
          "",
          true};
}

}  // namespace towers::test
