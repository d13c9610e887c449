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
  std::map<std::string, std::size_t> first;
  for (std::size_t r = 0; r < used.size(); ++r)
    for (const std::string& gpu : used[r].gpus) {
      const auto [found, fresh] = first.emplace(gpu, r);
      if (fresh || found->second == r) continue;
      return "rank " + std::to_string(found->second) + " on " + used[found->second].host +
             " and rank " + std::to_string(r) + " on " + used[r].host + " would share " + gpu +
             ", which NCCL refuses; start at most one process for each GPU of a machine (mpirun "
             "--map-by ppr:N:node, srun --ntasks-per-node=N) and let each see all of them, or see "
             "GPUs of its own (srun --gpus-per-task)";
    }
  return {};
}

}  // namespace towers::app
