#include "core/communication_thread.h"

#include <cstdlib>
#include <utility>

#include "core/trace.h"

namespace towers {

CommunicationThread::CommunicationThread(Make make)
    : thread_([this, make = std::move(make)] { work(make); }) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return ready_; });
  if (!exception_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(exception_);
}

CommunicationThread::~CommunicationThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    if (collective_) collective_->set_awaited(true);
  }
  posted_.notify_all();
  thread_.join();
}

void CommunicationThread::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (exception_) return;
    jobs_.push_back(std::move(job));
  }
  posted_.notify_one();
}

void CommunicationThread::wait() {
  std::unique_lock lock(mutex_);
  collective_->set_awaited(true);
  done_.wait(lock, [this] { return jobs_.empty() && !busy_; });
  collective_->set_awaited(awake_);
  if (exception_) std::rethrow_exception(exception_);
}

void CommunicationThread::abort(int exit_code) {
  run([exit_code](Collective& collective) { collective.abort(exit_code); });
  std::abort();  // not reached
}

void CommunicationThread::stay_awake() {
  const std::lock_guard lock(mutex_);
  awake_ = true;
  collective_->set_awaited(true);
}

void CommunicationThread::work(const Make& make) {
  name_trace_thread("ranks");
  std::unique_lock lock(mutex_);
  try {
    collective_ = make();
  } catch (...) {
    exception_ = std::current_exception();
  }
  ready_ = true;
  done_.notify_all();
  while (collective_) {
    posted_.wait(lock, [this] { return !jobs_.empty() || ending_; });
    if (jobs_.empty()) break;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr exception;
    try {
      job(*collective_);
    } catch (...) {
      exception = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (exception) {
      exception_ = exception;
      failed_ = true;
      jobs_.clear();
    }
    if (jobs_.empty()) done_.notify_all();
  }
  lock.unlock();
  collective_.reset();
}

}  // namespace towers
