#include "cuda/spread.h"

#include <algorithm>
#include <span>

#include "core/agreement.h"
#include "core/communication_thread.h"

namespace towers::cuda {

Spread spread_towers(const std::vector<int>& device_of_tower, int processes, int process) {
  Spread spread;
  spread.towers = static_cast<int>(device_of_tower.size());
  spread.own_towers = spread.towers / processes;
  spread.first_tower = process * spread.own_towers;
  for (int p = 0, tower = 0; p < processes; ++p) {
    const auto first = static_cast<std::ptrdiff_t>(spread.gpus.size());
    if (p == process) spread.first_gpu = spread.gpus.size();
    for (int t = 0; t < spread.own_towers; ++t, ++tower) {
      const int device = device_of_tower[static_cast<std::size_t>(tower)];
      auto gpu = std::find_if(spread.gpus.begin() + first, spread.gpus.end(),
                              [&](const Spread::Gpu& g) { return g.device == device; });
      if (gpu == spread.gpus.end()) gpu = spread.gpus.insert(gpu, {device});
      gpu->towers.push_back(tower);
      spread.most = std::max(spread.most, static_cast<int>(gpu->towers.size()));
    }
    if (p == process) spread.own_gpus = spread.gpus.size() - spread.first_gpu;
  }
  return spread;
}

Spread spread_over_processes(const std::vector<int>& own, CommunicationThread* processes) {
  if (processes == nullptr) return spread_towers(own, 1, 0);
  std::vector<int> all(own.size() * static_cast<std::size_t>(processes->ranks()));
  std::copy(own.begin(), own.end(),
            all.begin() + processes->rank() * static_cast<std::ptrdiff_t>(own.size()));
  processes->run([&](Collective& collective) {
    agree(collective, 0);
    gather_equal(collective, std::as_writable_bytes(std::span(all)));
  });
  return spread_towers(all, processes->ranks(), processes->rank());
}

}  // namespace towers::cuda
