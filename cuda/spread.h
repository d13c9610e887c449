#pragma once
// Which GPU of which process has which towers of a run.

#include <cstddef>
#include <vector>

namespace towers {
class CommunicationThread;
}

namespace towers::cuda {

struct Spread {
  struct Gpu {
    int device = 0;             // its process's CUDA ordinal
    std::vector<int> towers{};  // of the run, ascending
  };
  std::vector<Gpu> gpus{};                  // in use, of one process after the other: NCCL's ranks
  std::size_t first_gpu = 0, own_gpus = 0;  // this process's
  int first_tower = 0, own_towers = 0;      // this process's
  int towers = 0;                           // of the run
  int most = 0;                             // on one GPU
};

// device_of_tower: of each process's towers, as many for each, one process after the other; this
// one is number `process` of `processes`. A process's GPUs come in the order of their first tower.
Spread spread_towers(const std::vector<int>& device_of_tower, int processes, int process);

// The same of all processes, told `own`, this one's, by each; null: there is no other. Throws Error
// where another one has failed.
Spread spread_over_processes(const std::vector<int>& own, CommunicationThread* processes);

}  // namespace towers::cuda
