// In the place of cuda/all_reduce.cpp and NCCL. The ranks' streams wait for each other: nothing is
// summed before all of them got there, and each receives when its own stream goes on.

#include "cuda/all_reduce.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "tests/cuda_host/world.h"

namespace towers::cuda {
namespace {

using cuda_host::Allocation;
using cuda_host::Happening;
using cuda_host::Locked;
using cuda_host::Work;

// Of one call: what the ranks have in common.
template <class W>
struct Meeting {
  std::vector<const W*> send;
  std::size_t count = 0;
  bool gather = false;  // else: sum
  std::vector<W> result;
  std::size_t missing;
  std::shared_ptr<Happening> complete = std::make_shared<Happening>();

  void arrive() {
    if (--missing > 0) return;
    for (const W* values : send) {  // in the order of the ranks
      if (gather)
        result.insert(result.end(), values, values + count);
      else
        for (std::size_t i = 0; i < count; ++i) result[i] += values[i];
    }
    complete->done = true;
  }
};

template <class W>
class StandInAllReduce final : public AllReduce<W> {
 public:
  explicit StandInAllReduce(const std::vector<int>& devices) : devices_(devices) {
    if (devices.empty() || std::set<int>(devices.begin(), devices.end()).size() != devices.size())
      throw std::logic_error("all-reduce (stand-in): the same device twice, or none");
  }
  ~StandInAllReduce() override {
    const Locked world;
    if (*under_way_ > 0)
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
  void wait_for(std::span<Stream* const> streams) override {
    for (Stream* const stream : streams) stream->synchronize();  // which notices what hangs
  }

 private:
  void check(const Locked& world, std::size_t rank, const W* buffer, std::size_t count) const {
    const Allocation* a = world->memory.find(buffer, count * sizeof(W));
    if (a == nullptr || a->device != devices_[rank])
      throw std::logic_error("all-reduce (stand-in): a buffer is not memory of its rank");
  }

  void meet(std::span<const W* const> send, std::span<W* const> receive, std::size_t count,
            std::span<Stream* const> streams, bool gather) {
    const Locked world;
    const std::size_t ranks = devices_.size(), results = gather ? ranks * count : count;
    if (send.size() != ranks || receive.size() != ranks || streams.size() != ranks)
      throw std::logic_error("all-reduce (stand-in): another number of ranks than it was made for");
    for (std::size_t r = 0; r < ranks; ++r) {
      const bool in_place = !gather && send[r] == receive[r];
      const bool apart = send[r] + count <= receive[r] || receive[r] + results <= send[r];
      if (streams[r]->device() != devices_[r] || !(in_place || apart))
        throw std::logic_error("all-reduce (stand-in): a rank's stream or buffers do not fit");
      check(world, r, send[r], count);
      check(world, r, receive[r], results);
    }
    const auto meeting = std::make_shared<Meeting<W>>();
    meeting->send.assign(send.begin(), send.end());
    meeting->count = count;
    meeting->gather = gather;
    if (!gather) meeting->result.resize(count);
    meeting->missing = ranks;
    for (std::size_t r = 0; r < ranks; ++r) {
      CUstream_st& stream = *world->stream(streams[r]->get());
      if (stream.capture != nullptr)
        throw std::logic_error("all-reduce (stand-in): not while a stream captures");
      Work arrive;
      arrive.devices = ~0u;
      arrive.run = [meeting] { meeting->arrive(); };
      world->enqueue(stream, std::move(arrive));
      Work leave;
      leave.devices = ~0u;
      leave.after = meeting->complete;
      ++*under_way_;
      leave.run = [meeting, to = receive[r], left = under_way_] {
        std::copy(meeting->result.begin(), meeting->result.end(), to);
        --*left;
      };
      world->enqueue(stream, std::move(leave));
    }
  }

  std::vector<int> devices_;
  std::shared_ptr<int> under_way_ = std::make_shared<int>(0);  // ranks that have not received yet
};

}  // namespace

template <class W>
std::unique_ptr<AllReduce<W>> make_all_reduce(const std::vector<int>& devices) {
  return std::make_unique<StandInAllReduce<W>>(devices);
}
template std::unique_ptr<AllReduce<float>> make_all_reduce(const std::vector<int>&);
template std::unique_ptr<AllReduce<double>> make_all_reduce(const std::vector<int>&);

}  // namespace towers::cuda
