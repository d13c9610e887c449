#pragma once
// Denormal numbers of the calling thread.

#if defined(__SSE__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace towers::cpu {

// While one lives, the calling thread takes denormal operands and results for zero (where the
// processor can do that).
class DenormalsFlushed {
 public:
  DenormalsFlushed() : before_(control()) { set_control(before_ | kFlush); }
  ~DenormalsFlushed() { set_control(before_); }
  DenormalsFlushed(const DenormalsFlushed&) = delete;
  DenormalsFlushed& operator=(const DenormalsFlushed&) = delete;

 private:
#if defined(__SSE__)
  using Control = unsigned;
  static constexpr Control kFlush = 0x8000 | 0x0040;  // results, operands
  static Control control() {
    return _mm_getcsr();
  }
  static void set_control(Control control) {
    _mm_setcsr(control);
  }
#elif defined(__aarch64__)
  using Control = std::uint64_t;
  static constexpr Control kFlush = Control{1} << 24;
  static Control control() {
    Control control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
  }
  static void set_control(Control control) {
    __asm__ volatile("msr fpcr, %0" ::"r"(control));
  }
#else
  using Control = int;
  static constexpr Control kFlush = 0;
  static Control control() {
    return 0;
  }
  static void set_control(Control) {}
#endif

  Control before_;
};

}  // namespace towers::cpu
