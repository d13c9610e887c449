#pragma once
// What the processes of one run, its ranks, do together. libtowers_mpi.so implements it over MPI
// (cluster/mpi_module.h), tests within one process.

#include <atomic>
#include <cstddef>
#include <span>
#include <string>

namespace towers {

// All ranks make the same calls in the same order with the same sizes, each from one thread, the
// one that made the object; each call returns when this rank's part of it is done. What fails ends
// the process (a rank that is gone cannot be waited for), so nothing is thrown.
class Collective {
 public:
  struct Part {  // of a buffer, in bytes
    std::size_t offset = 0, size = 0;
  };

  virtual ~Collective() = default;

  // These three may be called from any thread.
  virtual int rank() const = 0;   // 0 .. ranks() - 1
  virtual int ranks() const = 0;  // at least 1
  // Whether somebody waits for the call under way, or threads that compute may have the processor.
  void set_awaited(bool awaited) { awaited_.store(awaited, std::memory_order_relaxed); }

  // Ends the processes of all ranks, this one with them, wherever the others are.
  virtual void abort(int exit_code) = 0;
  // Sends sent[r] of `send` to each rank r; what rank r sends goes to received[r] of `receive`.
  virtual void all_to_all(const std::byte* send, std::span<const Part> sent, std::byte* receive,
                          std::span<const Part> received) = 0;
  // parts[r] of `data` is rank r's; afterwards every rank has all of them.
  virtual void all_gather(std::byte* data, std::span<const Part> parts) = 0;
  // Rank `from`'s data to all.
  virtual void broadcast(std::span<std::byte> data, int from) = 0;

 protected:
  bool awaited() const { return awaited_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> awaited_{false};
};

}  // namespace towers
