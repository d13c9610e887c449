#pragma once
// The thread that makes all calls of a Collective, so that they overlap with computation and need
// no more than the simplest of MPI's thread levels.

#include <atomic>
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

  // Ends the processes of all ranks, this one with them. Throws where a job has thrown: then the
  // others know.
  [[noreturn]] void abort(int exit_code);

  // Whether the other ranks wait for this one elsewhere than at an agreement (core/agreement.h),
  // where a failure cannot be told, so that only abort() is left. Of the thread that waits.
  void set_awaited_elsewhere(bool awaited) { awaited_elsewhere_ = awaited; }
  bool awaited_elsewhere() const { return awaited_elsewhere_; }
  // A job has thrown: the ranks are ending. From any thread.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // The processors are free for the calls: they do not rest while others compute.
  void stay_awake();

 private:
  void work(const Make& make);

  std::mutex mutex_;  // guards what follows
  std::condition_variable posted_, done_;
  std::deque<Job> jobs_;
  bool ready_ = false, busy_ = false, ending_ = false, awake_ = false;
  std::exception_ptr exception_;

  std::atomic<bool> failed_{false};
  bool awaited_elsewhere_ = false;
  std::unique_ptr<Collective> collective_;  // of the thread, but for what any thread may call
  std::thread thread_;
};

}  // namespace towers
