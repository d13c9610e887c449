// In the place of cuda/all_reduce.cpp and NCCL. The GPUs' streams wait for each other: nothing is
// summed before all of them got there, and each receives when its own stream goes on. Processes
// are threads of this one.

#include "cuda/all_reduce.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/error.h"
#include "tests/cuda_host/world.h"

namespace towers::cuda {
namespace {

using cuda_host::Allocation;
using cuda_host::Happening;
using cuda_host::Locked;
using cuda_host::Work;
using GroupKey = decltype(GpuGroup::id);

// Of one call: what the GPUs have in common.
template <class W>
struct Meeting {
  std::vector<const W*> send;
  std::size_t count = 0;
  bool gather = false;  // else: sum
  std::vector<W> result;
  std::size_t enqueued = 0, arrived = 0;
  bool abandoned = false;                            // by a process whose memory may be gone
  std::vector<std::shared_ptr<Happening>> complete;  // for each GPU

  void arrive() {
    if (++arrived < send.size() || abandoned) return;
    for (const W* values : send) {  // in the order of the GPUs
      if (gather)
        result.insert(result.end(), values, values + count);
      else
        for (std::size_t i = 0; i < count; ++i) result[i] += values[i];
    }
    for (const std::shared_ptr<Happening>& happening : complete) happening->done = true;
  }
};

// What the processes of a group share, guarded by the world's lock but for `joined`.
template <class W>
struct Group {
  std::set<int> joined;                                           // GPUs' numbers
  std::map<std::uint64_t, std::shared_ptr<Meeting<W>>> meetings;  // under way, by number of call
  // GPUs that have come to the first call of a kind (gather or sum) and size.
  std::map<std::pair<bool, std::size_t>, std::size_t> connected;
};

std::mutex g_groups;  // guards what follows, and Group::joined and connected
std::condition_variable g_somebody_joined;
template <class W>
std::map<GroupKey, std::shared_ptr<Group<W>>>& groups() {
  static std::map<GroupKey, std::shared_ptr<Group<W>>> all;
  return all;
}

// Returns when all GPUs of the group have come.
template <class W>
std::shared_ptr<Group<W>> join(const GpuGroup& wanted, std::size_t own) {
  std::unique_lock lock(g_groups);
  std::shared_ptr<Group<W>>& entry = groups<W>()[wanted.id];
  if (!entry) entry = std::make_shared<Group<W>>();
  const std::shared_ptr<Group<W>> group = entry;
  for (int g = wanted.first; g < wanted.first + static_cast<int>(own); ++g)
    if (g < 0 || g >= wanted.gpus || !group->joined.insert(g).second)
      throw std::logic_error("all-reduce (stand-in): a GPU's number twice, or out of range");
  g_somebody_joined.notify_all();
  const auto complete = [&] { return static_cast<int>(group->joined.size()) == wanted.gpus; };
  if (!g_somebody_joined.wait_for(lock, std::chrono::minutes(2), complete))
    throw std::logic_error("all-reduce (stand-in): not all processes came");
  groups<W>().erase(wanted.id);
  return group;
}

template <class W>
class StandInAllReduce final : public AllReduce<W> {
 public:
  StandInAllReduce(const std::vector<int>& devices, const GpuGroup& group)
      : devices_(devices), gpus_(group) {
    if (devices.empty() || std::set<int>(devices.begin(), devices.end()).size() != devices.size())
      throw std::logic_error("all-reduce (stand-in): the same device twice, or none");
    group_ = join<W>(group, devices.size());
  }
  ~StandInAllReduce() override {
    const Locked world;
    if (*under_way_ > 0 && !abandoned_)
      world->fault(cudaErrorLaunchFailure, "an all-reduce was destroyed while it was under way");
  }

  void sum(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
           std::span<Stream* const> streams) override {
    meet(send, receive, count, streams, false);
  }
  void gather(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
              std::span<Stream* const> streams) override {
    meet(send, receive, count, streams, true);
  }
  void check() override {
    if (abandoned_) throw Error("all-reduce (stand-in): abandoned");
    const Locked world;
    const auto now = std::chrono::steady_clock::now();
    if (world->can_go_on()) stuck_since_ = now;
    // Another thread may still enqueue what is missing.
    if (now - stuck_since_ > std::chrono::seconds(world->settings.threads ? 30 : 0))
      world->fault(cudaErrorLaunchTimeout, "streams wait for each other, or for what is missing");
  }
  void abandon() override {
    const Locked world;
    abandoned_ = true;
    for (const Wait& wait : waits_) {
      wait.meeting->abandoned = !wait.complete->done || wait.meeting->abandoned;
      wait.complete->done = true;
    }
  }

 private:
  struct Wait {  // of one GPU
    std::shared_ptr<Meeting<W>> meeting;
    std::shared_ptr<Happening> complete;
  };

  void check(const Locked& world, std::size_t gpu, const W* buffer, std::size_t count) const {
    const Allocation* a = world->memory.find(buffer, count * sizeof(W));
    if (a == nullptr || a->device != devices_[gpu])
      throw std::logic_error("all-reduce (stand-in): a buffer is not memory of its GPU");
  }

  // As NCCL, which connects the GPUs in the first call: the host waits in it for other processes.
  void connect(std::size_t count, bool gather) {
    std::unique_lock lock(g_groups);
    const std::size_t all = static_cast<std::size_t>(gpus_.gpus);
    std::size_t& come = group_->connected[{gather, count}];
    if (come >= all) return;
    come += devices_.size();
    g_somebody_joined.notify_all();
    if (!g_somebody_joined.wait_for(lock, std::chrono::seconds(30), [&] { return come >= all; }))
      throw std::logic_error("all-reduce (stand-in): waits in a first call for other processes");
  }

  std::shared_ptr<Meeting<W>> next_meeting(std::size_t count, bool gather) {
    std::shared_ptr<Meeting<W>>& entry = group_->meetings[calls_];
    if (!entry) {
      entry = std::make_shared<Meeting<W>>();
      entry->send.resize(static_cast<std::size_t>(gpus_.gpus));
      entry->count = count;
      entry->gather = gather;
      if (!gather) entry->result.resize(count);
    }
    const std::shared_ptr<Meeting<W>> meeting = entry;
    if (meeting->count != count || meeting->gather != gather)
      throw std::logic_error("all-reduce (stand-in): processes make different calls");
    meeting->enqueued += devices_.size();
    if (meeting->enqueued == meeting->send.size()) group_->meetings.erase(calls_);
    ++calls_;
    return meeting;
  }

  void meet(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
            std::span<Stream* const> streams, bool gather) {
    connect(count, gather);
    const Locked world;
    if (abandoned_) throw Error("all-reduce (stand-in): abandoned");
    const std::size_t own = devices_.size();
    const std::size_t results = gather ? static_cast<std::size_t>(gpus_.gpus) * count : count;
    if (send.size() != own || receive.size() != own || streams.size() != own)
      throw std::logic_error("all-reduce (stand-in): another number of GPUs than it was made for");
    for (std::size_t g = 0; g < own; ++g) {
      const bool in_place = !gather && send[g] == receive[g];
      const bool apart = send[g] + count <= receive[g] || receive[g] + results <= send[g];
      if (streams[g]->device() != devices_[g] || !(in_place || apart))
        throw std::logic_error("all-reduce (stand-in): a GPU's stream or buffers do not fit");
      check(world, g, send[g], count);
      check(world, g, receive[g], results);
    }
    std::erase_if(waits_, [](const Wait& wait) { return wait.complete->done; });
    const std::shared_ptr<Meeting<W>> meeting = next_meeting(count, gather);
    std::copy(send.begin(), send.end(), meeting->send.begin() + gpus_.first);
    for (std::size_t g = 0; g < own; ++g) {
      CUstream_st& stream = *world->stream(streams[g]->get());
      if (stream.capture != nullptr)
        throw std::logic_error("all-reduce (stand-in): not while a stream captures");
      enqueue(world, stream, meeting, receive[g]);
    }
  }

  void enqueue(const Locked& world, CUstream_st& stream, const std::shared_ptr<Meeting<W>>& meeting,
               W* receive) {
    // One for each GPU, so that a process can end its own waits.
    const auto complete = std::make_shared<Happening>();
    meeting->complete.push_back(complete);
    waits_.push_back({meeting, complete});
    Work arrive;
    arrive.devices = ~0u;
    arrive.run = [meeting] { meeting->arrive(); };
    world->enqueue(stream, std::move(arrive));
    Work leave;
    leave.devices = ~0u;
    leave.after = complete;
    ++*under_way_;
    leave.run = [meeting, receive, left = under_way_] {
      if (!meeting->abandoned) std::copy(meeting->result.begin(), meeting->result.end(), receive);
      --*left;
    };
    world->enqueue(stream, std::move(leave));
  }

  std::vector<int> devices_;
  GpuGroup gpus_;
  std::shared_ptr<Group<W>> group_;
  std::uint64_t calls_ = 0;
  bool abandoned_ = false;
  std::chrono::steady_clock::time_point stuck_since_ = std::chrono::steady_clock::now();
  std::vector<Wait> waits_;
  std::shared_ptr<int> under_way_ = std::make_shared<int>(0);  // GPUs that have not received yet
};

}  // namespace

void require_nccl() {}

GroupKey make_group_id() {
  static std::atomic<std::uint64_t> made = 0;
  const std::uint64_t number = ++made;
  GroupKey id{};
  std::memcpy(id.data(), &number, sizeof number);
  return id;
}

template <class W>
std::unique_ptr<AllReduce<W>> make_all_reduce(const std::vector<int>& devices,
                                              const GpuGroup& group) {
  return std::make_unique<StandInAllReduce<W>>(devices, group);
}
template std::unique_ptr<AllReduce<float>> make_all_reduce(const std::vector<int>&,
                                                           const GpuGroup&);
template std::unique_ptr<AllReduce<double>> make_all_reduce(const std::vector<int>&,
                                                            const GpuGroup&);

}  // namespace towers::cuda
