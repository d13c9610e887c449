#include "tests/cuda_host/block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/cuda_host/fiber.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

// Where the linker puts all __shared__ variables; without any there are no such symbols.
extern "C" __attribute__((weak)) char __start_towers_shared[], __stop_towers_shared[];

namespace towers::cuda_host {
namespace {

constexpr unsigned kLanes = 32;

enum class State : std::uint8_t { fresh, running, at_exchange, at_barrier, done };

// Threads of one warp that exchange under one mask. Words of two exchanges are kept, for a thread
// may arrive at the next one while others still have to read the last.
struct Exchange {
  unsigned mask = 0;
  unsigned arrived = 0;
  unsigned generation = 0;
  std::array<std::array<std::uint64_t, kLanes>, 2> words;
};

struct Warp {
  unsigned alive = 0;
  std::vector<Exchange> exchanges;  // reserved: references stay
};

struct Thread {
  State state = State::fresh;
  Fiber* fiber = nullptr;  // while it waits
  Exchange* exchange = nullptr;
  unsigned generation = 0;  // of the exchange that it waits for
};

class Block {
 public:
  std::string run(unsigned count, bool backwards, const std::function<void()>& body);

  void barrier(int line, bool yes);
  int barrier_count() const { return counted_; }
  const std::uint64_t* exchange(unsigned mask, std::uint64_t word);
  unsigned lane() const { return current_ % kLanes; }
  bool running() const { return fiber_ != nullptr; }
  [[noreturn]] void abandon(std::string reason);

 private:
  unsigned thread_at(unsigned position) const {
    return backwards_ ? count_ - 1 - position : position;
  }
  void enter(unsigned thread);
  void wait();
  void settle(Warp& warp);
  void work(Fiber& self);
  bool advance(unsigned thread);
  bool pass();
  void release_barrier();
  Fiber* idle_fiber();

  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::unique_ptr<Fiber>> fibers_;  // all that there ever were: a Block stays for good
  std::vector<Fiber*> idle_;
  const std::function<void()>* body_ = nullptr;
  std::string fault_;
  Fiber* fiber_ = nullptr;  // that runs now
  unsigned count_ = 0, current_ = 0, next_fresh_ = 0, done_ = 0;
  unsigned waiting_ = 0;  // at the barrier in barrier_line_, of which yes_ said yes
  int barrier_line_ = 0, yes_ = 0, counted_ = 0;
  bool backwards_ = false;
};

void Block::enter(unsigned thread) {
  current_ = thread;
  threadIdx.x = thread % blockDim.x;
  threadIdx.y = thread / blockDim.x % blockDim.y;
  threadIdx.z = thread / blockDim.x / blockDim.y;
  threads_[thread].state = State::running;
}

// Body of every fiber: takes threads that nobody has started, one after the other.
void Block::work(Fiber& self) {
  for (;;) {
    while (next_fresh_ < count_) {
      const unsigned thread = thread_at(next_fresh_++);
      enter(thread);
      (*body_)();
      threads_[thread].state = State::done;
      ++done_;
      Warp& warp = warps_[thread / kLanes];
      warp.alive &= ~(1u << thread % kLanes);
      settle(warp);
    }
    idle_.push_back(&self);
    self.suspend();
  }
}

Fiber* Block::idle_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>([this](Fiber& self) { work(self); }));
    return fibers_.back().get();
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

// Gives the processor to a thread if it can go on.
bool Block::advance(unsigned t) {
  Thread& thread = threads_[t];
  if (thread.state == State::fresh) {
    fiber_ = idle_fiber();
  } else if (thread.state == State::at_exchange &&
             thread.generation != thread.exchange->generation) {
    fiber_ = thread.fiber;
    enter(t);
  } else {
    return false;
  }
  fiber_->resume();
  fiber_ = nullptr;
  return true;
}

// One visit to each warp, for as long as something goes on in it.
bool Block::pass() {
  bool any = false;
  for (unsigned begin = 0; begin < count_; begin += kLanes) {
    for (bool moved = true; moved && fault_.empty();) {
      moved = false;
      for (unsigned p = begin; p < begin + kLanes && p < count_ && fault_.empty(); ++p)
        moved |= advance(thread_at(p));
      any |= moved;
    }
  }
  return any;
}

void Block::release_barrier() {
  counted_ = yes_;
  yes_ = 0;
  waiting_ = 0;
  for (unsigned p = 0; p < count_ && fault_.empty(); ++p) {
    const unsigned t = thread_at(p);
    fiber_ = threads_[t].fiber;
    enter(t);
    fiber_->resume();
    fiber_ = nullptr;
  }
}

std::string Block::run(unsigned count, bool backwards, const std::function<void()>& body) {
  count_ = count;
  backwards_ = backwards;
  body_ = &body;
  fault_.clear();
  next_fresh_ = done_ = waiting_ = 0;
  yes_ = 0;
  threads_.assign(count, {});
  warps_.resize((count + kLanes - 1) / kLanes);
  for (unsigned w = 0; w < warps_.size(); ++w) {
    const unsigned lanes = std::min(kLanes, count - w * kLanes);
    warps_[w].alive = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    warps_[w].exchanges.clear();
    warps_[w].exchanges.reserve(kLanes);
  }
  while (fault_.empty() && done_ < count_) {
    if (waiting_ == count_)
      release_barrier();
    else if (!pass() && waiting_ < count_)
      fault_ = waiting_ > 0 ? "divergent __syncthreads: " + std::to_string(waiting_) + " of " +
                                  std::to_string(count_) + " threads are in line " +
                                  std::to_string(barrier_line_)
                            : "divergent warp: threads that a mask names did not come";
  }
  return fault_;
}

// Suspends the thread that runs.
void Block::wait() {
  threads_[current_].fiber = fiber_;
  fiber_->suspend();
}

void Block::barrier(int line, bool yes) {
  if (waiting_ > 0 && barrier_line_ != line)
    abandon("divergent __syncthreads: threads of one block are in lines " +
            std::to_string(barrier_line_) + " and " + std::to_string(line));
  barrier_line_ = line;
  yes_ += yes;
  ++waiting_;
  threads_[current_].state = State::at_barrier;
  wait();
}

// Completes exchanges for which nobody is missing.
void Block::settle(Warp& warp) {
  for (Exchange& exchange : warp.exchanges) {
    if (exchange.arrived == 0 || (exchange.mask & warp.alive & ~exchange.arrived) != 0) continue;
    exchange.arrived = 0;
    ++exchange.generation;
    // Rubbish for lanes that will not come.
    exchange.words[exchange.generation % 2].fill(0xffc0dead'ffc0dead);
  }
}

const std::uint64_t* Block::exchange(unsigned mask, std::uint64_t word) {
  Warp& warp = warps_[current_ / kLanes];
  const unsigned lane = current_ % kLanes;
  if ((mask >> lane & 1) == 0) abandon("a warp mask does not name the thread that uses it");
  Exchange* exchange = nullptr;
  for (Exchange& candidate : warp.exchanges)
    if (candidate.mask == mask) exchange = &candidate;
  if (exchange == nullptr) {
    if (warp.exchanges.size() == kLanes) abandon("too many different masks in one warp");
    exchange = &warp.exchanges.emplace_back();
    exchange->mask = mask;
    exchange->words[0].fill(0xffc0dead'ffc0dead);
  }
  const unsigned generation = exchange->generation;
  exchange->words[generation % 2][lane] = word;
  exchange->arrived |= 1u << lane;
  threads_[current_].exchange = exchange;
  threads_[current_].generation = generation;
  settle(warp);
  if (exchange->generation == generation) {
    threads_[current_].state = State::at_exchange;
    wait();
  }
  return exchange->words[generation % 2].data();
}

// Its fiber and those that wait are lost: what is on their stacks cannot be unwound from here, so
// nothing that owns memory may be left there.
void Block::abandon(std::string reason) {
  fault_ = reason;
  std::string().swap(reason);
  for (;;) fiber_->suspend();
}

Block& block() {
  static Block* const instance = new Block;
  return *instance;
}

void spoil_shared_memory() {
  if (__start_towers_shared == nullptr) return;
  std::memset(__start_towers_shared, 0xff,
              static_cast<std::size_t>(__stop_towers_shared - __start_towers_shared));
}

}  // namespace

std::string run_grid(dim3 blocks, dim3 threads, const std::function<void()>& thread,
                     Random& random) {
  gridDim = blocks;
  blockDim = threads;
  const std::uint64_t count = std::uint64_t{blocks.x} * blocks.y * blocks.z;
  // Any start and any stride that has no divisor in common with the count reaches every block once.
  std::uint64_t at = random() % count, stride = random() % count + 1;
  while (std::gcd(stride, count) != 1) --stride;
  for (std::uint64_t b = 0; b < count; ++b, at = (at + stride) % count) {
    blockIdx.x = static_cast<unsigned>(at % blocks.x);
    blockIdx.y = static_cast<unsigned>(at / blocks.x % blocks.y);
    blockIdx.z = static_cast<unsigned>(at / blocks.x / blocks.y);
    spoil_shared_memory();
    std::string fault = block().run(threads.x * threads.y * threads.z, random() % 2 == 0, thread);
    if (!fault.empty()) return fault;
  }
  return {};
}

bool in_block() {
  return block().running();
}
void abandon_block(std::string reason) {
  block().abandon(std::move(reason));
}

void block_barrier(int line) {
  block().barrier(line, false);
}
int block_count(bool yes, int line) {
  block().barrier(line, yes);
  return block().barrier_count();
}
const std::uint64_t* warp_exchange(unsigned mask, std::uint64_t word) {
  return block().exchange(mask, word);
}
int this_lane() {
  return static_cast<int>(block().lane());
}

}  // namespace towers::cuda_host
