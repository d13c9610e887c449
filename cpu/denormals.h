#pragma once
// Denormal numbers of the calling thread.

#if defined(__SSE__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace towers::cpu {

// From here on the calling thread takes denormal operands and results for zero (where the processor
// can do that).
inline void flush_denormals() {
#if defined(__SSE__)
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#elif defined(__aarch64__)
  constexpr std::uint64_t kFlushToZero = std::uint64_t{1} << 24;
  std::uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  __asm__ volatile("msr fpcr, %0" ::"r"(control | kFlushToZero));
#endif
}

}  // namespace towers::cpu
