#include "tests/cuda_host/world.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include "tests/cuda_host/capture.h"

namespace towers::cuda_host {
namespace {

// Then all threads wait for each other.
constexpr std::chrono::seconds kLongest{120};
constexpr std::chrono::microseconds kNap{20};

std::recursive_mutex& mutex() {
  static std::recursive_mutex instance;
  return instance;
}

std::unique_ptr<World>& instance() {
  static std::unique_ptr<World> world;
  return world;
}

// The work under way, for the signal handler.
World* running = nullptr;
unsigned running_devices = 0;
std::thread::id running_thread;
struct sigaction former_action;

// Device memory is closed: the first access to a page of it comes by here.
void on_fault(int, siginfo_t* info, void*) {
  if (running == nullptr || std::this_thread::get_id() != running_thread || !in_block()) {
    ::sigaction(SIGSEGV, &former_action, nullptr);  // the access repeats, and ends there
    return;
  }
  std::string fault = running->memory.open(info->si_addr, running_devices);
  if (!fault.empty()) abandon_block(std::move(fault));
}

// Catch2 puts its own handler in place for each test, so ours comes and goes with each piece of
// work.
class FaultHandler {
 public:
  FaultHandler(World& world, unsigned devices) {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;  // the handler may leave for another stack
    running = &world;
    running_devices = devices;
    running_thread = std::this_thread::get_id();
    ::sigaction(SIGSEGV, &action, &former_action);
  }
  ~FaultHandler() {
    ::sigaction(SIGSEGV, &former_action, nullptr);
    running = nullptr;
  }
};

}  // namespace

World::World(const Settings& s) : settings(s), memory(s.devices, s.memory), random(s.seed) {
  for (int device = 0; device < s.devices; ++device) {
    streams.push_back(std::make_unique<CUstream_st>());
    streams.back()->device = device;
  }
  // From "only where the host waits" to "at once", so that both kinds of mistake show.
  ahead_ = std::array{0.0, 0.02, 0.2, 0.9}[random() % 4];
}

World::~World() {
  for (CUevent_st* event : events) delete event;
}

CUstream_st* World::stream(cudaStream_t handle) const {
  if (handle == nullptr) {
    int device = 0;
    cudaGetDevice(&device);
    return streams[static_cast<std::size_t>(device)].get();
  }
  for (const auto& s : streams)
    if (s.get() == handle && !s->destroyed) return s.get();
  return nullptr;
}

void World::enqueue(CUstream_st& stream, Work work) {
  if (stream.capture != nullptr) {
    stream.capture->nodes.push_back({std::move(work), stream.frontier});
    stream.frontier = {stream.capture->nodes.size() - 1};
    return;
  }
  stream.queue.push_back(std::move(work));
  while (static_cast<double>(random() % 1000) < ahead_ * 1000 && step()) {
  }
}

// Somebody who asks again and again gets an answer in the end.
void World::run_ahead() {
  if (random() % 4 == 0) step();
}

bool World::can_go_on() const {
  bool empty = true;
  for (const auto& s : streams) {
    if (s->queue.empty() || failed(s->device)) continue;
    empty = false;
    const Happening* after = s->queue.front().after.get();
    if (after == nullptr || after->done) return true;
  }
  return empty;
}

bool World::step() {
  if (sticky != cudaSuccess) return false;
  CUstream_st* next = nullptr;
  if (random() % 8 == 0) streams[random() % streams.size()]->priority = random();
  for (const auto& s : streams) {
    if (s->queue.empty() || failed(s->device)) continue;
    const Happening* after = s->queue.front().after.get();
    if (after != nullptr && !after->done) continue;
    if (next == nullptr || s->priority > next->priority) next = s.get();
  }
  if (next == nullptr) return false;
  const Work work = std::move(next->queue.front());
  next->queue.pop_front();
  waited_ = {};
  if (next->destroyed && next->queue.empty())
    std::erase_if(streams, [next](const auto& s) { return s.get() == next; });
  execute(work);
  if (work.marks != nullptr) *work.marks = {.done = true, .time = time};
  return true;
}

void World::execute(const Work& work) {
  if (!work.run) return;
  if (work.on_host) return work.run();
  ++time;
  if (work.devices != open_to_) memory.close_all();
  open_to_ = work.devices;
  const FaultHandler handler(*this, work.devices);
  const std::string what = run_grid(work.blocks, work.threads, work.run, random);
  if (!what.empty()) fault(cudaErrorIllegalAddress, what);
}

void World::run_until(const std::function<bool()>& done) {
  if (random() % 2 == 0)
    for (const auto& s : streams) s->priority = random();
  do {
    while (!done() && step()) {
    }
  } while (!done() && sticky == cudaSuccess && wait_for_other_threads());
  if (!done() && sticky == cudaSuccess)
    fault(cudaErrorLaunchTimeout, "streams wait for each other, or for what nobody enqueues");
}

// Whether the world may have changed meanwhile. Of a caller that holds the lock once.
bool World::wait_for_other_threads() {
  if (!settings.threads || waited_ > kLongest) return false;
  memory.close_all();
  mutex().unlock();
  std::this_thread::sleep_for(kNap);
  mutex().lock();
  waited_ += kNap;
  return true;
}

void World::run_all() {
  run_until([this] {
    return std::all_of(streams.begin(), streams.end(),
                       [this](const auto& s) { return s->queue.empty() || failed(s->device); });
  });
}

void World::fault(cudaError_t error, const std::string& what) {
  std::fprintf(stderr, "stand-in: %s\n", what.c_str());
  faults.push_back(what);
  if (sticky == cudaSuccess) sticky = error;
}

// Pages stay open for the work that follows on the same device, but not for the host.
Locked::~Locked() {
  if (instance() != nullptr) instance()->memory.close_all();
}

Locked::Locked() : lock_(mutex()) {
  if (instance() == nullptr) instance() = std::make_unique<World>(Settings{});
  world_ = instance().get();
}

void start(const Settings& settings) {
  const Locked lock;
  cudaSetDevice(0);
  instance() = nullptr;
  instance() = std::make_unique<World>(settings);
  cudaGetLastError();
}

std::vector<std::string> finish() {
  const Locked world;
  world->run_all();
  std::vector<std::string> all = world->faults;
  if (world->sticky != cudaSuccess) return all;  // the rest follows from it
  for (const std::string& leak : world->memory.leaks()) all.push_back(leak);
  const auto left = [&](std::size_t count, const char* what) {
    if (count > 0) all.push_back(std::to_string(count) + " " + what + " never destroyed");
  };
  left(world->streams.size() - static_cast<std::size_t>(world->settings.devices), "streams");
  left(world->events.size(), "events");
  left(world->graphs.size(), "graphs");
  return all;
}

}  // namespace towers::cuda_host
