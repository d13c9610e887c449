#pragma once
// What crosses the GPUs of this process, by NCCL, which is loaded when two or more GPUs are used.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/runtime.h"

namespace towers::cuda {

// W: float or double.
template <class W>
class AllReduce {
 public:
  virtual ~AllReduce() = default;
  // receive[r][i] = sum over ranks of send[rank][i], enqueued on streams[r]; one entry per rank.
  virtual void sum(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
                   std::span<Stream* const> streams) = 0;
  // The host waits until all that was enqueued on the streams, one of each rank, is done. Throws
  // Error where a sum failed: none is left waiting for the others then.
  virtual void wait_for(std::span<Stream* const> streams) = 0;
  // receive[r] = send[0], send[1], ... of all ranks, `count` values each, enqueued on streams[r].
  virtual void gather(std::span<const W* const> send, std::span<W* const> receive,
                      std::size_t count, std::span<Stream* const> streams) = 0;
};

// One rank per device (CUDA ordinals, all different). Throws Error naming the library, the version
// wanted, where it was looked for and what to install.
template <class W>
std::unique_ptr<AllReduce<W>> make_all_reduce(const std::vector<int>& devices);

}  // namespace towers::cuda
