// Defines the switch for denormals on x86-64 and AArch64.
#include "core/device/denormals.h"

#include <cstdint>

#include "core/device/threads.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rushlight {
namespace {

#if defined(__x86_64__)
constexpr bool kHasSwitch = true;
void set_on_this_thread(bool mode) {
  constexpr unsigned kBits = 0x8040;  // flush-to-zero and denormals-are-zero
  unsigned state = _mm_getcsr();
  _mm_setcsr(mode ? state | kBits : state & ~kBits);
}
#elif defined(__aarch64__)
constexpr bool kHasSwitch = true;
void set_on_this_thread(bool mode) {
  constexpr uint64_t kBit = uint64_t(1) << 24;  // FZ
  uint64_t state;
  asm volatile("mrs %0, fpcr" : "=r"(state));
  state = mode ? state | kBit : state & ~kBit;
  asm volatile("msr fpcr, %0" : : "r"(state));
}
#else
constexpr bool kHasSwitch = false;
void set_on_this_thread(bool) {}
#endif

}  // namespace

bool set_flush_denormal(bool mode) {
  set_on_this_thread(mode);
  int threads = num_threads();
  parallel_for(0, threads, 1, [=](int64_t, int64_t) { set_on_this_thread(mode); });
  return kHasSwitch;
}

}  // namespace rushlight
