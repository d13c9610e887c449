#pragma once
// How ranks on one machine share its GPUs.

#include <string>
#include <vector>

namespace towers::app {

// The part [begin, end) of `count` GPUs that rank `rank` takes, where seen[r] names those that rank
// r sees: ranks that see the same share them out, in order, as evenly as may be.
struct GpuShare {
  int begin = 0, end = 0;
};
GpuShare gpu_share_of(const std::vector<std::string>& seen, int rank, int count);

// GPUs that ranks train on: used[r] of rank r. Where two ranks have the same one, or two parts
// (MIG) of one, which NCCL refuses, a line for the user that names both and the GPU; else empty.
struct RankGpu {
  std::string uuid;        // "GPU-...", or "MIG-..." of a part
  std::string pci_bus_id;  // of the machine; all parts of a GPU have the same
};
struct RankGpus {
  std::string host;
  std::vector<RankGpu> gpus;
};
std::string gpu_used_twice(const std::vector<RankGpus>& used);

}  // namespace towers::app
