#include "app/gpu_share.h"

#include <algorithm>
#include <map>

namespace towers::app {

GpuShare gpu_share_of(const std::vector<std::string>& seen, int rank, int count) {
  const auto me = seen.begin() + rank;
  const auto sharing = static_cast<int>(std::count(seen.begin(), seen.end(), *me));
  const auto before = static_cast<int>(std::count(seen.begin(), me, *me));
  return {count * before / sharing, count * (before + 1) / sharing};
}

std::string gpu_used_twice(const std::vector<RankGpus>& used) {
  std::map<std::string, std::size_t> ranks;  // that have a GPU, or a part of it
  // Empty where rank r is the first one.
  const auto two_ranks = [&](const std::string& gpu, std::size_t r) -> std::string {
    const auto [found, fresh] = ranks.emplace(gpu, r);
    if (fresh || found->second == r) return {};
    return "rank " + std::to_string(found->second) + " on " + used[found->second].host +
           " and rank " + std::to_string(r) + " on " + used[r].host;
  };
  for (std::size_t r = 0; r < used.size(); ++r)
    for (const RankGpu& gpu : used[r].gpus) {
      if (const std::string two = two_ranks(gpu.uuid, r); !two.empty())
        return two + " would share " + gpu.uuid + " (" + gpu.pci_bus_id +
               "), which NCCL refuses; start at most one process for each GPU of a machine (mpirun "
               "--map-by ppr:N:node, srun --ntasks-per-node=N) and let each see all of them, or "
               "see GPUs of its own (srun --gpus-per-task)";
      if (!gpu.uuid.starts_with("MIG-")) continue;
      if (const std::string two = two_ranks(used[r].host + " " + gpu.pci_bus_id, r); !two.empty())
        return two + " would train on parts (MIG) of one GPU, " + gpu.pci_bus_id +
               ", which NCCL refuses; let them see parts of different GPUs, switch MIG off "
               "(nvidia-smi -mig 0), or train in one process";
    }
  return {};
}

}  // namespace towers::app
