#include "data/checkpoint_saver.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/trace.h"
#include "data/file.h"
#include "data/run_folder.h"

namespace towers::data {
namespace {

// Removes the files of a checkpoint, of any number of shards; the index first, so that nobody takes
// what is left for a checkpoint. What is gone already is no error.
void remove_checkpoint(const std::filesystem::path& prefix) {
  std::error_code error;
  std::filesystem::path index = prefix;
  index += ".index";
  std::filesystem::remove(index, error);
  if (error) throw_file_error("delete", index, error.value());
  const std::string data = prefix.filename().string() + ".data-";
  for (const auto& file : std::filesystem::directory_iterator(prefix.parent_path(), error)) {
    if (!file.path().filename().string().starts_with(data)) continue;
    std::filesystem::remove(file.path(), error);
    if (error) throw_file_error("delete", file.path(), error.value());
  }
}

// Checkpoints in `dir` of later steps than the latest that the state file does not know.
std::vector<std::filesystem::path> unnamed_after(const std::filesystem::path& dir,
                                                 const CheckpointState& state) {
  if (state.latest.empty()) return {};
  std::vector<std::filesystem::path> there = checkpoints_in(dir);
  const auto latest = std::find(there.begin(), there.end(), dir / state.latest.filename());
  there.erase(there.begin(), latest);
  std::erase_if(there, [&](const std::filesystem::path& prefix) {
    return std::find_if(state.all.begin(), state.all.end(), [&](const auto& known) {
             return known.filename() == prefix.filename();
           }) != state.all.end();
  });
  return there;
}

// Only such checkpoints are ours to delete: a state file may name others, too.
bool lies_in(const std::filesystem::path& prefix, const std::filesystem::path& dir) {
  std::error_code error;
  return std::filesystem::equivalent(prefix.parent_path(), dir, error) && !error;
}

}  // namespace

std::filesystem::path checkpoint_prefix(const std::filesystem::path& dir, std::int64_t step) {
  return dir / ("model.ckpt-" + std::to_string(step));
}

std::optional<std::int64_t> step_in_name(const std::filesystem::path& prefix) {
  const std::string name = prefix.filename().string();
  const std::string_view digits = std::string_view(name).substr(name.rfind('-') + 1);
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  if (step < 0 || step == std::numeric_limits<std::int64_t>::max()) return {};
  return step;
}

class CheckpointSaver::Impl {
 public:
  Impl(const std::filesystem::path& dir, int max_to_keep)
      : dir_(dir), max_to_keep_(static_cast<std::size_t>(std::max(max_to_keep, 0))) {
    const CheckpointState state = read_checkpoint_state(dir);
    kept_ = unnamed_after(dir, state);
    for (const std::filesystem::path& prefix : state.all) {
      if (lies_in(prefix, dir)) kept_.push_back(dir / prefix.filename());
      if (prefix == state.latest) latest_ = prefix;
    }
    thread_ = std::thread([this] {
      name_trace_thread("checkpoint saver");
      run();
    });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::string save(std::int64_t step, std::span<const Tensor> tensors) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !pending_; });
    copy(tensors);
    step_ = step;
    pending_ = true;
    changed_.notify_all();
    return std::exchange(message_, {});
  }

  std::string wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !pending_; });
    return std::exchange(message_, {});
  }

  bool last_failed() const {
    const std::lock_guard lock(mutex_);
    return last_failed_;
  }

  std::filesystem::path latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
  }

 private:
  void copy(std::span<const Tensor> tensors) {
    std::size_t bytes = 0;
    for (const Tensor& tensor : tensors) bytes += tensor.bytes.size();
    buffer_.resize(bytes);
    tensors_.assign(tensors.begin(), tensors.end());
    std::byte* to = buffer_.data();
    for (Tensor& tensor : tensors_) {
      if (!tensor.bytes.empty()) std::memcpy(to, tensor.bytes.data(), tensor.bytes.size());
      tensor.bytes = {to, tensor.bytes.size()};
      to += tensor.bytes.size();
    }
  }

  // While `pending_` is set the buffer, the tensors and the list of kept ones are this thread's.
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return pending_ || ending_; });
      if (!pending_) return;
      lock.unlock();
      std::string message;
      bool failed = true;
      std::filesystem::path written;
      try {
        const TraceSpan span("write checkpoint", step_);
        written = checkpoint_prefix(dir_, step_);
        write(written);
        failed = false;
        delete_oldest();
      } catch (const std::exception& error) {
        message = error.what();
      }
      lock.lock();
      if (!message.empty()) message_ = message;
      if (!failed) latest_ = written;
      last_failed_ = failed;
      pending_ = false;
      changed_.notify_all();
    }
  }

  void write(const std::filesystem::path& prefix) {
    write_checkpoint(prefix, tensors_);
    std::erase(kept_, prefix);
    kept_.push_back(prefix);
    write_checkpoint_state(dir_, {prefix, kept_, {}});
  }

  // One that can't be deleted is tried again next time.
  void delete_oldest() {
    if (max_to_keep_ == 0 || kept_.size() <= max_to_keep_) return;
    while (kept_.size() > max_to_keep_) {
      remove_checkpoint(kept_.front());
      kept_.erase(kept_.begin());
    }
    write_checkpoint_state(dir_, {kept_.back(), kept_, {}});
  }

  const std::filesystem::path dir_;
  const std::size_t max_to_keep_;
  std::vector<std::filesystem::path> kept_;  // oldest first
  std::vector<std::byte> buffer_;
  std::vector<Tensor> tensors_;
  std::int64_t step_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool pending_ = false, ending_ = false, last_failed_ = false;
  std::string message_;
  std::filesystem::path latest_;
  std::thread thread_;
};

CheckpointSaver::CheckpointSaver(const std::filesystem::path& dir, int max_to_keep)
    : impl_(std::make_unique<Impl>(dir, max_to_keep)) {}
CheckpointSaver::~CheckpointSaver() = default;

std::string CheckpointSaver::save(std::int64_t step, std::span<const Tensor> tensors) {
  return impl_->save(step, tensors);
}
std::string CheckpointSaver::wait() {
  return impl_->wait();
}
bool CheckpointSaver::last_failed() const {
  return impl_->last_failed();
}
std::filesystem::path CheckpointSaver::latest() const {
  return impl_->latest();
}

}  // namespace towers::data
