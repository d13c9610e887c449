#pragma once
// The thread that makes all calls of a Collective, so that they overlap with computation and need
// no more than the simplest of MPI's thread levels.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/collective.h"

namespace towers {

class CommunicationThread {
 public:
  using Make = std::function<std::unique_ptr<Collective>()>;
  using Job = std::function<void(Collective&)>;

  // Calls `make` on the new thread; throws what it throws.
  explicit CommunicationThread(Make make);
  // After the jobs posted; the Collective ends on its thread.
  ~CommunicationThread();
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  int rank() const { return collective_->rank(); }
  int ranks() const { return collective_->ranks(); }
  void abort(int exit_code) { collective_->abort(exit_code); }

  // Has `job` run on the thread behind those posted before, and returns at once. From any thread;
  // every rank posts the same jobs in the same order. What a job throws comes out of wait(), and
  // jobs behind it are dropped: ranks that throw must do so in the same job.
  void post(Job job);
  // Until all posted jobs are done. Throws what a job threw, from then on each time.
  void wait();
  void run(Job job) {
    post(std::move(job));
    wait();
  }

 private:
  void work(const Make& make);

  std::mutex mutex_;  // guards what follows
  std::condition_variable posted_, done_;
  std::deque<Job> jobs_;
  bool ready_ = false, busy_ = false, ending_ = false;
  std::exception_ptr exception_;

  std::unique_ptr<Collective> collective_;  // of the thread, but for what any thread may call
  std::thread thread_;
};

}  // namespace towers
