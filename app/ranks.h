#pragma once
// This process's part in a run: alone, or as one of the ranks that mpirun or srun started. Rank 0
// leads: it alone restores, prints and writes.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/communication_thread.h"

namespace towers::app {

std::string host_name();

// All ranks make the same calls in the same order. Each is an agreement: where a rank has failed,
// the call throws on all of them what `fail` was told there, behind the rank and its host. So a
// rank that fails makes none but `fail`, whichever call the others make, and nobody waits for it.
class Ranks {
 public:
  // Joins the others where launched so. Throws Error where there are others but no way to them.
  Ranks();

  bool alone() const { return thread_ == nullptr; }
  int rank() const { return alone() ? 0 : thread_->rank(); }
  int count() const { return alone() ? 1 : thread_->ranks(); }
  bool leads() const { return rank() == 0; }
  // For CompileOptions::ranks; null alone.
  const std::shared_ptr<CommunicationThread>& thread() const { return thread_; }

  // Alone, these do nothing but return what is this process's own.
  void agree();
  std::vector<std::string> gather(const std::string& mine);  // every rank's
  std::string leaders(const std::string& mine);              // rank 0's
  void take_leaders(std::span<std::byte> data);              // overwritten by rank 0's

  // They enclose a step, in which the gradients are exchanged. `stop` (0: go on) says why this rank
  // wants it to be the last one; end_step returns that of the first rank that has one, or 0.
  void begin_step(int stop);
  int end_step(int stop);
  // The end of the run: both at once.
  int finish(int stop);

  // Runs `body`; what it throws is told to the other ranks.
  template <class Body>
  auto run(Body body) -> decltype(body()) {
    if (alone()) return body();
    try {
      return body();
    } catch (...) {
      fail();
    }
  }

 private:
  // Throws what all ranks agree on, of which the current exception is a part, having said it.
  [[noreturn]] void fail();
  [[noreturn]] void tell();  // the same, without a word
  // On the thread, behind an agreement; not where this process is alone.
  void together(const CommunicationThread::Job& job);

  std::shared_ptr<CommunicationThread> thread_;
  std::vector<std::int32_t> stops_;  // of all ranks, in the step under way
};

}  // namespace towers::app
