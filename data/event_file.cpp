#include "data/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/error.h"
#include "data/crc32c.h"
#include "data/file.h"
#include "protos/event.pb.h"

namespace towers::data {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <typename Integer>
void append_little_endian(std::string& to, Integer value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof bytes);
}

std::uint32_t masked_crc(std::string_view bytes) {
  return mask_crc32c(crc32c(std::as_bytes(std::span(bytes))));
}

// DIR/events.out.tfevents.SECONDS.HOST, with more behind it when that is taken: two writers may
// start in one second, and neither may write over the other's file.
FileDescriptor create_event_file(const std::filesystem::path& dir, std::filesystem::path& path) {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  char name[320];
  std::snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s",
                static_cast<long long>(seconds_since_1970()), host);
  path = dir / name;
  for (int n = 0;; ++n) {
    FileDescriptor file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (file.get() >= 0) return file;
    if (errno != EEXIST) throw_file_error("write", path, errno);
    path = dir / (std::string(name) + "." + std::to_string(::getpid()) + "." + std::to_string(n));
  }
}

}  // namespace

std::string frame_record(std::string_view data) {
  std::string record;
  record.reserve(data.size() + 16);
  append_little_endian(record, std::uint64_t{data.size()});
  append_little_endian(record, masked_crc(record));
  record += data;
  append_little_endian(record, masked_crc(data));
  return record;
}

class EventFileWriter::Impl {
 public:
  Impl(const std::filesystem::path& dir, std::chrono::milliseconds flush_interval)
      : flush_interval_(flush_interval), file_(create_event_file(dir, path_)) {
    proto::Event version;
    version.set_wall_time(seconds_since_1970());
    version.set_file_version("brain.Event:2");
    // At once, so that a folder that can't be written to is found here.
    try {
      write(frame_record(version.SerializeAsString()));
    } catch (const std::exception&) {
      ::unlink(path_.c_str());
      throw;
    }
    thread_ = std::thread([this] { run(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const std::filesystem::path& path() const { return path_; }

  void add(proto::Event& event) {
    event.set_wall_time(seconds_since_1970());
    const std::string record = frame_record(event.SerializeAsString());
    const std::lock_guard lock(mutex_);
    throw_failure();
    queue_ += record;
    changed_.notify_all();
  }

  proto::Event& summary() {
    if (!summary_) throw std::logic_error("a summary value outside begin_summary and end_summary");
    return *summary_;
  }
  void begin_summary(std::int64_t step) {
    summary_.emplace();
    summary_->set_step(step);
    summary_->mutable_summary();
  }
  void end_summary() {
    add(summary());
    summary_.reset();
  }

  void flush() {
    std::unique_lock lock(mutex_);
    flush_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !flush_; });
    throw_failure();
  }

 private:
  void throw_failure() {
    if (failure_.empty()) return;
    const Error error(failure_);
    failure_.clear();
    throw error;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (!ending_ || !queue_.empty()) {
      changed_.wait(lock, [this] { return !queue_.empty() || flush_ || ending_; });
      changed_.wait_for(lock, flush_interval_, [this] { return flush_ || ending_; });
      const std::string records = std::move(queue_);
      queue_.clear();
      const bool sync = flush_;
      lock.unlock();
      std::string failure;
      try {
        write(records);
        if (sync && ::fdatasync(file_.get()) != 0) throw_file_error("write", path_, errno);
      } catch (const std::exception& error) {
        failure = error.what();
      }
      lock.lock();
      if (!failure.empty()) failure_ = failure;
      if (sync) flush_ = false;
      changed_.notify_all();
    }
  }

  // All of `records` or nothing: readers stop at a torn record, so one must not stay before others.
  void write(const std::string& records) {
    try {
      write_all(file_, path_, std::as_bytes(std::span(records)));
      whole_ += static_cast<off_t>(records.size());
    } catch (const Error&) {
      if (::ftruncate(file_.get(), whole_) != 0) throw_file_error("shorten", path_, errno);
      throw;
    }
  }

  const std::chrono::milliseconds flush_interval_;
  std::filesystem::path path_;
  FileDescriptor file_;
  off_t whole_ = 0;  // bytes of whole records written
  std::optional<proto::Event> summary_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string queue_;  // framed records
  std::string failure_;
  bool flush_ = false, ending_ = false;
  std::thread thread_;
};

EventFileWriter::EventFileWriter(const std::filesystem::path& dir,
                                 std::chrono::milliseconds flush_interval)
    : impl_(std::make_unique<Impl>(dir, flush_interval)) {}
EventFileWriter::~EventFileWriter() = default;

void EventFileWriter::add_graph(const std::string& serialized_graph_def) {
  proto::Event event;
  event.set_graph_def(serialized_graph_def);
  impl_->add(event);
}

void EventFileWriter::add_session_start(std::int64_t step) {
  proto::Event event;
  event.set_step(step);
  event.mutable_session_log()->set_status(proto::SessionLog::START);
  impl_->add(event);
}

void EventFileWriter::begin_summary(std::int64_t step) {
  impl_->begin_summary(step);
}

void EventFileWriter::scalar(const std::string& tag, float value) {
  auto* v = impl_->summary().mutable_summary()->add_value();
  v->set_tag(tag);
  v->set_simple_value(value);
}

void EventFileWriter::histogram(const std::string& tag, const Histogram& histogram) {
  auto* v = impl_->summary().mutable_summary()->add_value();
  v->set_tag(tag);
  proto::HistogramProto* h = v->mutable_histo();
  h->set_min(histogram.min());
  h->set_max(histogram.max());
  h->set_num(histogram.count());
  h->set_sum(histogram.sum());
  h->set_sum_squares(histogram.sum_squares());
  std::vector<double> limits, counts;
  histogram.encode(limits, counts);
  h->mutable_bucket_limit()->Add(limits.begin(), limits.end());
  h->mutable_bucket()->Add(counts.begin(), counts.end());
}

void EventFileWriter::end_summary() {
  impl_->end_summary();
}
void EventFileWriter::flush() {
  impl_->flush();
}
const std::filesystem::path& EventFileWriter::path() const {
  return impl_->path();
}

}  // namespace towers::data
