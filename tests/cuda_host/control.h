#pragma once
// What tests set and ask of the stand-in GPUs.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace towers::cuda_host {

struct Settings {
  int devices = 1;                            // 0 to 8
  std::size_t memory = std::size_t{1} << 30;  // bytes of each
  int capability = 80;                        // for compute: 80 is 8.0
  std::uint64_t seed = 0;                     // of the order in which things happen
  bool threads = false;       // other threads enqueue as well, so that who waits waits for them
  bool names_kernels = true;  // tells which kernel a node of a graph is
  bool has_engines = true;    // cuDNN's stand-in has one for every pass of a convolution
};

// New devices, without memory in use, streams or errors. What is left of the former ones is lost.
void start(const Settings& settings);

// Devices on which a context has been made since `start`, or since this was called last: each takes
// hundreds of MiB of a GPU, and is made by choosing the device (from CUDA 12 on) as by using it.
std::vector<int> take_contexts();

// How often memory was asked for or given back, and the host waited for what was enqueued (asking
// whether it is done is no wait), since `start` or since this was called last.
struct HostCalls {
  int allocations = 0, waits = 0;
};
HostCalls take_host_calls();

// The device fails: from now on nothing runs on it, and calls that have to do with it return an
// error that stays. Other devices go on, as other CUDA contexts do. Giving memory back still works,
// so that `finish` can tell what was forgotten.
void fail_device(int device);

// What profilers are told: the name of each range that begins and "end" where one does, of all
// threads, since this was called last.
std::vector<std::string> take_ranges();

// Runs what is still enqueued, then tells all that was wrong since `start`: illegal accesses, wrong
// frees, copies from memory that was gone, and what has not been freed or destroyed. Empty:
// nothing.
std::vector<std::string> finish();

}  // namespace towers::cuda_host
