#include "cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/trace.h"
#include "cpu/available_threads.h"
#include "cpu/denormals.h"

namespace towers::cpu {
namespace {

constexpr int kSpins = 2000;

void pause() {
#if defined(__SSE__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

void ThreadPool::Signal::raise() {
  {
    // Under the lock, or a thread between its last look and its sleep would miss it.
    const std::lock_guard lock(mutex_);
    count_.fetch_add(1, std::memory_order_release);
  }
  changed_.notify_all();
}

std::uint32_t ThreadPool::Signal::wait_beyond(std::uint32_t seen) {
  for (int spin = 0; spin < kSpins; ++spin) {
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    if (count != seen) return count;
    pause();
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return count_.load(std::memory_order_acquire) != seen; });
  return count_.load(std::memory_order_acquire);
}

ThreadPool::ThreadPool(int threads, std::string name, std::span<const int> processors)
    : kept_(!processors.empty()) {
  threads_.reserve(static_cast<std::size_t>(std::max(threads, 1)));
  try {
    threads_.emplace_back([this, name = std::move(name)] {
      name_trace_thread(name);
      lead();
    });
    for (int worker = 1; worker < threads; ++worker)
      threads_.emplace_back([this, worker] { work(worker); });
  } catch (const std::system_error& e) {
    stop();
    throw Error("cannot start " + std::to_string(threads) + " compute threads (" + e.what() +
                "); " + kFewerThreads);
  }
  try {
    keep_on(processors);
  } catch (...) {
    stop();
    throw;
  }
}

void ThreadPool::keep_on(std::span<const int> processors) {
  for (std::size_t t = 0; t < processors.size(); ++t) {
    const std::size_t processor = static_cast<std::size_t>(processors[t]);
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(processor + 1),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(processor + 1);
    CPU_ZERO_S(bytes, set.get());
    CPU_SET_S(processor, bytes, set.get());
    if (const int error = ::pthread_setaffinity_np(threads_[t].native_handle(), bytes, set.get()))
      throw Error("cannot keep a compute thread on processor " + std::to_string(processor) + " (" +
                  std::generic_category().message(error) + "); leave --pin_threads out");
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stopping_ = true;
  job_started_.raise();
  tasks_started_.raise();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::start_job(Call job) {
  job_ = job;
  job_started_.raise();
}

// Not inline: a compiler may move arithmetic that it sees past a change of the mode it is done in.
void ThreadPool::run_job(Call job) {
  if (kept_) {
    start_job(job);
    return wait();
  }
  const DenormalsFlushed flushed;
  job.function(job.context, 0, 0);
}

void ThreadPool::wait() {
  jobs_waited_for_ = job_done_.wait_beyond(jobs_waited_for_);
  if (job_exception_) std::rethrow_exception(std::exchange(job_exception_, nullptr));
}

void ThreadPool::lead() {
  const DenormalsFlushed flushed;
  for (std::uint32_t seen = 0;;) {
    seen = job_started_.wait_beyond(seen);
    if (stopping_) return;
    try {
      job_.function(job_.context, 0, 0);
    } catch (...) {
      job_exception_ = std::current_exception();
    }
    job_done_.raise();
  }
}

void ThreadPool::work(int worker) {
  const DenormalsFlushed flushed;
  for (std::uint32_t seen = 0;;) {
    seen = tasks_started_.wait_beyond(seen);
    if (stopping_) return;
    take_tasks(worker);
    if (workers_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) tasks_done_.raise();
  }
}

void ThreadPool::take_tasks(int worker) {
  for (;;) {
    const int task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_ || failed_.load(std::memory_order_relaxed)) return;
    try {
      body_.function(body_.context, task, worker);
    } catch (...) {
      note_exception();
    }
  }
}

void ThreadPool::note_exception() {
  const std::lock_guard lock(exception_mutex_);
  if (!exception_) exception_ = std::current_exception();
  failed_ = true;
}

void ThreadPool::run_tasks(int tasks, Call body) {
  body_ = body;
  tasks_ = tasks;
  next_task_ = 0;
  const int helpers = threads() - 1;
  if (helpers > 0 && tasks > 1) {
    // Every helper takes part in every round, if only to find nothing left: so none is still at an
    // old round when the next one begins.
    workers_busy_ = helpers;
    tasks_started_.raise();
    take_tasks(0);
    rounds_ = tasks_done_.wait_beyond(rounds_);
  } else {
    take_tasks(0);
  }
  if (failed_.exchange(false)) std::rethrow_exception(std::exchange(exception_, nullptr));
}

}  // namespace towers::cpu
