#include "app/backend_choice.h"

#include "cli/console.h"
#include "core/error.h"

namespace towers::app {

cpu::Options cpu_options(const cli::CommonOptions& options) {
  return {.threads = options.compute_threads,
          .devices = options.cpu_devices,
          .simd = options.simd,
          .pin_threads = options.pin_threads,
          .first_processor = options.first_processor};
}

std::unique_ptr<Backend> make_cpu_backend(const cli::CommonOptions& options) {
  return cpu::make_backend(cpu_options(options));
}

cuda::Loaded load_gpu_backend(const cli::CommonOptions& options,
                              const cuda::Surroundings& surroundings) {
  cuda::BackendOptions gpu;
  gpu.allow_tf32 = options.allow_tf32;
  gpu.debug = &cli::log_debug;
  gpu.warning = &cli::log_warning;
  return cuda::load_backend(gpu, surroundings);
}

std::unique_ptr<Backend> make_backend(const cli::CommonOptions& options,
                                      const cuda::Surroundings& surroundings) {
  if (options.device == "cpu") return make_cpu_backend(options);
  if (options.device == "auto") {
    switch (cuda::nvidia_presence(surroundings)) {
      case cuda::NvidiaPresence::none:
      case cuda::NvidiaPresence::hidden:
        return make_cpu_backend(options);
      case cuda::NvidiaPresence::without_driver:
        cli::log_warning("the NVIDIA device at " + surroundings.pci_device +
                         " has no driver here (no /dev/nvidia0): running on the CPU");
        return make_cpu_backend(options);
      case cuda::NvidiaPresence::present:
        break;
    }
  }
  cuda::Loaded loaded = load_gpu_backend(options, surroundings);
  if (loaded.backend) return std::move(loaded.backend);
  if (options.device == "gpu")
    throw Error("--device=gpu: " + loaded.reason->text +
                "; or give --device=cpu to run on the CPU");
  throw Error("an NVIDIA device is present (" + surroundings.device_node + ") but " +
              loaded.reason->text + "; or give --device=cpu to run on the CPU");
}

}  // namespace towers::app
