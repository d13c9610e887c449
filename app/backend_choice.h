#pragma once
// --device: on what a command runs.

#include <memory>
#include <string>

#include "cli/options.h"
#include "core/backend.h"
#include "cpu/backend.h"
#include "cuda/loader.h"

namespace towers::app {

// Picks the backend for --device. "auto" takes GPUs where they are usable, else the CPU; an NVIDIA
// device that cannot be used is an Error that names --device=cpu and the reason, never a silent run
// on the CPU. CUDA_VISIBLE_DEVICES that hides all GPUs asks for the CPU.
std::unique_ptr<Backend> make_backend(const cli::CommonOptions& options,
                                      const cuda::Surroundings& surroundings = cuda::look_around());

// --compute_threads, --cpu_devices, --simd and --pin_threads, for the backend and for what measures
// the machine with the same threads.
cpu::Options cpu_options(const cli::CommonOptions& options);
std::unique_ptr<Backend> make_cpu_backend(const cli::CommonOptions& options);
cuda::Loaded load_gpu_backend(const cli::CommonOptions& options,
                              const cuda::Surroundings& surroundings = cuda::look_around());

}  // namespace towers::app
