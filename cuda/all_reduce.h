#pragma once
// What crosses the GPUs of a run, of one process or several, by NCCL, which is loaded when two or
// more GPUs are used.

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/runtime.h"

namespace towers::cuda {

// The GPUs that sum together. Those of a process follow each other.
struct GpuGroup {
  std::array<std::byte, 128> id{};  // made once for the group (make_group_id), the same for all
  int gpus = 0;                     // of all processes
  int first = 0;                    // the number of this process's first one
};

// Throws Error naming the library, the version wanted, where it was looked for and what to install.
void require_nccl();

// On one process. Throws Error as above, or where NCCL finds no network between processes.
decltype(GpuGroup::id) make_group_id();

// W: float or double. The calls take one entry for each GPU of this process; all processes make the
// same calls in the same order.
template <class W>
class AllReduce {
 public:
  virtual ~AllReduce() = default;
  // receive[g][i] = sum over the group's GPUs of send[gpu][i], enqueued on streams[g].
  virtual void sum(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
                   std::span<Stream* const> streams) = 0;
  // receive[g] = the group's send[0], send[1], ..., `count` values each, enqueued on streams[g].
  virtual void gather(std::span<const W* const> send, std::span<W* const> receive,
                      std::size_t count, std::span<Stream* const> streams) = 0;
  // Throws Error where something enqueued has failed: then it abandons.
  virtual void check() = 0;
  // Ends what is under way on this process's GPUs, with wrong numbers, so that nobody here waits
  // for others for ever. Nothing may be enqueued afterwards.
  virtual void abandon() = 0;
};

// On these GPUs of this process (CUDA ordinals, all different). Returns when all processes of the
// group have come. Throws Error.
template <class W>
std::unique_ptr<AllReduce<W>> make_all_reduce(const std::vector<int>& devices,
                                              const GpuGroup& group);

}  // namespace towers::cuda
