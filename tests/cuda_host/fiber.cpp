#include "tests/cuda_host/fiber.h"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <exception>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define TOWERS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOWERS_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(TOWERS_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace towers::cuda_host {
namespace {

namespace context = boost::context;

// Frames are several times larger under sanitizers, and a signal handler runs on this stack as
// well.
#if defined(TOWERS_ADDRESS_SANITIZER)
constexpr std::size_t kStack = 512 << 10;
#else
constexpr std::size_t kStack = 128 << 10;
#endif

// What address sanitizer has to know before and after a switch of stacks.
void before_switch([[maybe_unused]] void** fake, [[maybe_unused]] const void* bottom,
                   [[maybe_unused]] std::size_t size) {
#if defined(TOWERS_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(fake, bottom, size);
#endif
}
void after_switch([[maybe_unused]] void* fake, [[maybe_unused]] const void** bottom,
                  [[maybe_unused]] std::size_t* size) {
#if defined(TOWERS_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fake, bottom, size);
#endif
}

}  // namespace

struct Fiber::State {
  std::function<void(Fiber&)> body;
  context::fiber inside, outside;  // where to go on, of those that wait
  const void* bottom = nullptr;    // of this stack
  const void* outside_bottom = nullptr;
  std::size_t outside_size = 0;
  void *fake = nullptr, *outside_fake = nullptr;
};

Fiber::Fiber(std::function<void(Fiber&)> body) : state_(std::make_unique<State>()) {
  state_->body = std::move(body);
  context::protected_fixedsize_stack allocator(kStack);
  const context::stack_context stack = allocator.allocate();
  state_->bottom = static_cast<char*>(stack.sp) - kStack;
  state_->inside =
      context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
                     allocator, [this](context::fiber&& outside) -> context::fiber {
                       after_switch(nullptr, &state_->outside_bottom, &state_->outside_size);
                       state_->outside = std::move(outside);
                       state_->body(*this);
                       std::terminate();
                     });
}

Fiber::~Fiber() = default;

void Fiber::resume() {
  before_switch(&state_->outside_fake, state_->bottom, kStack);
  state_->inside = std::move(state_->inside).resume();
  after_switch(state_->outside_fake, nullptr, nullptr);
}

void Fiber::suspend() {
  before_switch(&state_->fake, state_->outside_bottom, state_->outside_size);
  state_->outside = std::move(state_->outside).resume();
  after_switch(state_->fake, &state_->outside_bottom, &state_->outside_size);
}

}  // namespace towers::cuda_host
