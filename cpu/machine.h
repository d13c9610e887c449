#pragma once
// The CPU devices of one backend: their thread pools and the kernels they run.

#include <atomic>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "cpu/backend.h"
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

namespace towers::cpu {

class Machine {
 public:
  // A pool for each device, and the threads on processors where options say so; throws as
  // make_backend does.
  explicit Machine(const Options& options);

  const Kernels& kernels() const { return kernels_; }
  std::size_t devices() const { return pools_.size(); }
  int threads() const { return threads_; }  // of all devices
  ThreadPool& pool(std::size_t device) { return *pools_[device]; }
  // The pools run one thing at a time; whoever uses them holds this.
  std::mutex& mutex() { return mutex_; }

  // jobs[d]() on each device d, at the same time; the first exception, if any, is thrown when all
  // have ended.
  template <class Job>
  void run_on_each_device(std::vector<Job>& jobs) {
    std::exception_ptr exception;
    const auto noting = [&](auto&& run) {
      try {
        run();
      } catch (...) {
        if (!exception) exception = std::current_exception();
      }
    };
    for (std::size_t d = 1; d < jobs.size(); ++d) pools_[d]->start(jobs[d]);
    noting([&] { pools_[0]->run(jobs[0]); });
    for (std::size_t d = 1; d < jobs.size(); ++d) noting([&] { pools_[d]->wait(); });
    if (exception) std::rethrow_exception(exception);
  }

  // body(task) for task = 0 .. tasks - 1 on all threads of all devices.
  template <class Body>
  void for_each(int tasks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    std::atomic<int> next{0};
    for (std::size_t d = 0; d < pools_.size(); ++d)
      shares_[d] = {pools_[d].get(), &next, tasks, &body,
                    [](void* context, int task) { (*static_cast<Plain*>(context))(task); }};
    run_on_each_device(shares_);
  }

 private:
  // What one device takes of a for_each.
  struct Share {
    ThreadPool* pool = nullptr;
    std::atomic<int>* next = nullptr;
    int tasks = 0;
    void* context = nullptr;
    void (*body)(void*, int) = nullptr;

    void operator()() const {
      pool->parallel_for(pool->threads(), [this](int, int) {
        for (int task = (*next)++; task < tasks; task = (*next)++) body(context, task);
      });
    }
  };

  Kernels kernels_;
  int threads_ = 0;
  std::vector<std::unique_ptr<ThreadPool>> pools_;
  std::vector<Share> shares_;
  std::mutex mutex_;
};

}  // namespace towers::cpu
