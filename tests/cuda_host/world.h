#pragma once
// Streams, events and what is enqueued on them. Nothing runs by itself: work is executed on the
// host thread that synchronises, and now and then ahead of it, in any order that streams and events
// allow, drawn from the seed.

#include <cuda_runtime_api.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda_host/block.h"
#include "tests/cuda_host/control.h"
#include "tests/cuda_host/memory.h"

namespace towers::cuda_host {

// Something that happens once, when the stream that it is enqueued on gets there.
struct Happening {
  bool done = false;
  std::uint64_t time = 0;  // World::time then
};

struct Work {
  std::function<void()> run;  // touches memory of `devices`; see World::execute
  unsigned devices = 0;
  dim3 blocks{}, threads{};
  // Of a kernel: which, and what makes `run` of arguments.
  const void* kernel = nullptr;
  std::function<std::function<void()>(void** arguments)> bind;
  bool vendor = false;  // a library's kernel, of which CUDA does not tell which one it is
  std::shared_ptr<const Happening> after;  // does not start before it; may be null
  std::shared_ptr<Happening> marks;        // happens with it; may be null
  bool on_host = false;  // `run` is the stand-in's own and touches no memory itself
};

struct Capture;  // capture.h

}  // namespace towers::cuda_host

struct CUstream_st {
  int device = 0;
  std::deque<towers::cuda_host::Work> queue;
  std::uint64_t priority = 0;
  bool destroyed = false;
  std::shared_ptr<towers::cuda_host::Capture> capture;
  std::vector<std::size_t> frontier;  // nodes of the capture that the next one comes after
};

struct CUevent_st {
  int device = 0;
  std::shared_ptr<towers::cuda_host::Happening> last;  // of the last record
  std::shared_ptr<towers::cuda_host::Capture> capture;
  std::vector<std::size_t> frontier;
};

namespace towers::cuda_host {

class World {
 public:
  explicit World(const Settings& settings);
  ~World();

  const Settings settings;
  Memory memory;
  Random random;
  std::vector<std::unique_ptr<CUstream_st>> streams;  // the devices' default streams first
  std::set<CUevent_st*> events;
  std::set<const void*> graphs;                 // and executable ones: what has not been destroyed
  std::set<std::shared_ptr<Capture>> captures;  // under way
  std::vector<std::string> faults;
  cudaError_t sticky = cudaSuccess;  // after a fault, every call returns it
  unsigned contexts = 0;             // devices, a bit each, on which the process takes memory
  unsigned failed_devices = 0;       // a bit each
  HostCalls host_calls;
  std::uint64_t time = 0;  // milliseconds: one for each piece of work

  CUstream_st* stream(cudaStream_t handle) const;  // null where there is no such stream
  bool can_go_on() const;                          // some stream, or all are empty
  bool failed(int device) const { return (failed_devices >> device & 1) != 0; }
  bool alive(cudaEvent_t event) const { return events.count(event) > 0; }

  // Enqueues on the stream, or records while it captures.
  void enqueue(CUstream_st& stream, Work work);
  // Runs until `done` says so, in a random order of what may run.
  void run_until(const std::function<bool()>& done);
  void run_all();
  // Time passes: a piece of work may run, or none.
  void run_ahead();
  void fault(cudaError_t error, const std::string& what);
  // Executes one piece of work now.
  void execute(const Work& work);

 private:
  bool step();
  bool wait_for_other_threads();
  unsigned open_to_ = 0;                // devices whose work opened the pages that are open
  std::chrono::microseconds waited_{};  // for other threads, since something ran
  double ahead_;                        // how readily work runs before the host waits for it
};

// The one world there is, locked for as long as the result lives.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  World* operator->() const { return world_; }
  World& operator*() const { return *world_; }

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  World* world_;
};

}  // namespace towers::cuda_host
