#include "data/pipeline.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/distortion.h"
#include "core/error.h"
#include "core/order.h"
#include "core/trace.h"

namespace towers::data {
namespace {

constexpr std::size_t kValues = std::size_t{3} * kCropPixels;  // of one image

// Whole cache lines, so that each part of a slot starts on one.
std::size_t in_lines(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

// A ring of `capacity` slots; batch k lives in slot k % capacity. Batches go through these states
// in order: claimed by a thread, filled, delivered by next(), released. So
//   released_ <= delivered_ <= claimed_ <= released_ + capacity,
// and whatever the threads' speed, batch k depends on k alone.
class Pipeline::Impl {
 public:
  Impl(const Dataset& dataset, const PipelineOptions& options, const Allocate& allocate)
      : dataset_(dataset),
        options_(checked(dataset, options)),
        orders_(options.seed, static_cast<std::uint32_t>(dataset.size())),
        slots_(static_cast<std::size_t>(options.capacity)) {
    if (options.form == InputForm::positions) return;  // nothing to make ahead
    lay_out_slots(allocate);
    start_threads();
  }

  ~Impl() { stop_threads(); }

  Batch next() {
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    const std::uint64_t k = delivered_;
    if (k - released_ == slots_.size())
      throw std::logic_error("Pipeline::next: all batches are held; release one first");
    Slot& slot = slot_of(k);
    if (options_.form == InputForm::positions) {
      slot.batch = {.size = options_.batch_size, .position = position_of(k)};
    } else if (options_.threads == 0) {
      lock.unlock();
      fill(k, slot);
      lock.lock();
    } else {
      // Batches before the one that failed were claimed earlier, so they arrive.
      filled_.wait(lock, [&] { return slot.filled == k + 1 || k >= failed_; });
      if (slot.filled != k + 1) std::rethrow_exception(error_);
    }
    ++delivered_;
    waited_ += std::chrono::steady_clock::now() - start;
    return slot.batch;
  }

  void release() {
    {
      const std::lock_guard lock(mutex_);
      if (released_ == delivered_) throw std::logic_error("Pipeline::release: no batch is held");
      ++released_;
    }
    room_.notify_one();
  }

  double seconds_waited() const { return std::chrono::duration<double>(waited_).count(); }

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  struct Slot {
    // Of the form asked for.
    float* images = nullptr;
    std::int32_t* labels = nullptr;
    std::uint8_t* records = nullptr;
    Batch batch;
    std::uint64_t filled = 0;  // 1 + number of the batch in it
  };

  static const PipelineOptions& checked(const Dataset& dataset, const PipelineOptions& options) {
    if (options.batch_size < 1 || options.capacity < 1 || options.threads < 0 || options.turn < 1 ||
        options.readers < 1)
      throw std::invalid_argument(
          "Pipeline: batch_size, capacity, turn and readers start at 1, threads at 0");
    if (dataset.size() == 0 || dataset.size() > std::numeric_limits<std::uint32_t>::max())
      throw std::invalid_argument("Pipeline: the data set holds no example, or too many");
    return options;
  }

  void lay_out_slots(const Allocate& allocate) {
    const std::size_t batch = static_cast<std::size_t>(options_.batch_size);
    const bool records = options_.form == InputForm::records;
    const std::size_t labels_at =
        in_lines(records ? batch * kRecordBytes : batch * kValues * sizeof(float));
    const std::size_t bytes = labels_at + (records ? 0 : in_lines(batch * sizeof(std::int32_t)));
    memory_ = allocate(slots_.size() * bytes);
    auto* next = static_cast<std::byte*>(memory_.get());
    for (Slot& slot : slots_) {
      if (records) {
        slot.records = reinterpret_cast<std::uint8_t*>(next);
      } else {
        slot.images = reinterpret_cast<float*>(next);
        slot.labels = reinterpret_cast<std::int32_t*>(next + labels_at);
      }
      slot.batch = {slot.images, slot.labels, options_.batch_size, slot.records, 0};
      next += bytes;
    }
  }

  // Of the batch's first example in the stream, which other readers take their turns of.
  std::uint64_t position_of(std::uint64_t k) const {
    const std::uint64_t turn = static_cast<std::uint64_t>(options_.turn);
    const std::uint64_t others = turn * static_cast<std::uint64_t>(options_.readers - 1);
    return options_.first_position +
           (k + k / turn * others) * static_cast<std::uint64_t>(options_.batch_size);
  }

  Slot& slot_of(std::uint64_t k) { return slots_[static_cast<std::size_t>(k % slots_.size())]; }

  void start_threads() {
    try {
      threads_.reserve(static_cast<std::size_t>(options_.threads));
      for (int i = 0; i < options_.threads; ++i)
        threads_.emplace_back([this, i] {
          name_trace_thread("input thread " + std::to_string(i));
          work();
        });
    } catch (const std::system_error& e) {
      stop_threads();
      throw Error("cannot start input thread " + std::to_string(threads_.size() + 1) + " of " +
                  std::to_string(options_.threads) + " (" + e.what() +
                  "); lower --input_threads, or raise the limit on processes");
    }
  }

  void stop_threads() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      room_.wait(lock, [this] {
        return stopping_ || failed_ != kNone || claimed_ < released_ + slots_.size();
      });
      if (stopping_ || failed_ != kNone) return;
      const std::uint64_t k = claimed_++;
      Slot& slot = slot_of(k);
      lock.unlock();
      std::exception_ptr error;
      try {
        fill(k, slot);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (!error) {
        slot.filled = k + 1;
      } else if (k < failed_) {
        failed_ = k;
        error_ = error;
        room_.notify_all();
      }
      filled_.notify_one();
    }
  }

  void fill(std::uint64_t k, Slot& slot) {
    const TraceSpan span("make batch", static_cast<std::int64_t>(k));
    const std::uint64_t batch = static_cast<std::uint64_t>(options_.batch_size);
    const std::uint64_t size = dataset_.size();
    std::uint64_t position = slot.batch.position = position_of(k);
    std::uint64_t epoch = position / size;
    EpochOrders::Order order = orders_.get(epoch);
    for (std::uint64_t i = 0; i < batch; ++i, ++position) {
      if (position / size != epoch) order = orders_.get(++epoch);
      const std::size_t example = (*order)[static_cast<std::size_t>(position % size)];
      if (slot.records != nullptr) {
        std::memcpy(slot.records + i * kRecordBytes, dataset_.record(example), kRecordBytes);
      } else {
        distort(dataset_.image(example), draw_distortion(options_.seed, position),
                slot.images + i * kValues);
        slot.labels[i] = dataset_.label(example);
      }
    }
  }

  const Dataset& dataset_;
  const PipelineOptions options_;
  EpochOrders orders_;
  std::shared_ptr<void> memory_;

  std::mutex mutex_;  // guards what follows, but for the slots' contents
  std::condition_variable room_, filled_;
  std::vector<Slot> slots_;
  std::uint64_t claimed_ = 0, delivered_ = 0, released_ = 0;  // numbers of batches
  std::uint64_t failed_ = kNone;                              // the first batch that failed
  std::exception_ptr error_;
  bool stopping_ = false;
  std::chrono::steady_clock::duration waited_{};  // next()'s thread alone
  std::vector<std::thread> threads_;
};

Pipeline::Pipeline(const Dataset& dataset, const PipelineOptions& options, const Allocate& allocate)
    : impl_(std::make_unique<Impl>(dataset, options, allocate)) {}
Pipeline::~Pipeline() = default;
Batch Pipeline::next() {
  return impl_->next();
}
void Pipeline::release() {
  impl_->release();
}
double Pipeline::seconds_waited() const {
  return impl_->seconds_waited();
}

}  // namespace towers::data
