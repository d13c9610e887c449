#pragma once
// The threads of one CPU device.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace towers::cpu {

// `threads` threads of its own, one of which, the leader, runs the job given to `start`; within the
// job, parallel_for shares tasks out over all of them. The thread that calls may lead in the
// leader's place (run). Whoever works for a device flushes denormal numbers to zero: late in
// training gradients fade into them, and they would slow the step down by far more than they are
// worth.
//
// start, wait and run: from one thread at a time. parallel_for: from the job alone.
// Threads that have nothing to do spin for some tens of microseconds, then sleep.
class ThreadPool {
 public:
  // At least one thread. `processors`: of each thread the one that it is kept on; empty: the system
  // moves them. Throws Error where the system refuses threads or processors.
  explicit ThreadPool(int threads, std::string name = "compute",
                      std::span<const int> processors = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }

  // Runs job() on the leader and returns at once. `job` must live until `wait` has returned.
  template <class Job>
  void start(Job& job) {
    start_job({&job, [](void* context, int, int) { (*static_cast<Job*>(context))(); }});
  }
  // Until the job is done; throws what it threw.
  void wait();
  // start and wait; but where threads are not kept on processors the calling thread leads in the
  // leader's place, so that nobody has to be woken.
  template <class Job>
  void run(Job&& job) {
    using Plain = std::remove_reference_t<Job>;
    run_job({&job, [](void* context, int, int) { (*static_cast<Plain*>(context))(); }});
  }

  // body(task, worker) for task = 0 .. tasks - 1, in any order; worker, 0 .. threads() - 1, tells
  // the threads apart. Returns when all are done. Where one throws, tasks not yet begun are left
  // out and the first exception is thrown here.
  template <class Body>
  void parallel_for(int tasks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_tasks(tasks, {const_cast<std::remove_const_t<Plain>*>(&body),
                      [](void* context, int task, int worker) {
                        (*static_cast<Plain*>(context))(task, worker);
                      }});
  }

 private:
  struct Call {
    void* context = nullptr;
    void (*function)(void*, int, int) = nullptr;
  };
  // A counter that threads wait for, spinning first. Raised by one thread at a time.
  class Signal {
   public:
    void raise();
    std::uint32_t wait_beyond(std::uint32_t seen);

   private:
    std::atomic<std::uint32_t> count_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
  };

  void start_job(Call job);
  void run_job(Call job);
  void run_tasks(int tasks, Call body);
  void keep_on(std::span<const int> processors);
  void stop();
  void take_tasks(int worker);
  void lead();
  void work(int worker);
  void note_exception();

  Signal job_started_, job_done_, tasks_started_, tasks_done_;
  std::uint32_t jobs_waited_for_ = 0, rounds_ = 0;
  Call job_, body_;
  std::exception_ptr job_exception_;

  int tasks_ = 0;
  std::atomic<int> next_task_{0};
  std::atomic<int> workers_busy_{0};
  std::atomic<bool> failed_{false};
  std::mutex exception_mutex_;
  std::exception_ptr exception_;

  const bool kept_;  // on processors
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace towers::cpu
