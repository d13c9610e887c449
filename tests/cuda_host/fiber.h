#pragma once
// A stack of its own to run a function on. Boost.Context switches; address sanitizer is told.

#include <functional>
#include <memory>

namespace towers::cuda_host {

class Fiber {
 public:
  // `body` never returns; it starts at the first resume.
  explicit Fiber(std::function<void(Fiber&)> body);
  ~Fiber();  // not while it is needed: nothing on its stack is destroyed
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();   // from outside: runs it until it suspends
  void suspend();  // from inside

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace towers::cuda_host
