// Copies between layouts: what they leave in the registers.
#include <cstdint>
#include <vector>

#include "core/tensor/tile_loop.h"
#include "core/tests/expect.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

using namespace rushlight;

namespace {

// Whether the upper halves of vector registers hold something, which makes instructions without
// them slow. False where the processor does not tell, or the compiler does not care: it empties
// them with -O2 only, and sanitized code has less.
bool upper_halves_are_full() {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
  constexpr unsigned kTells = 1 << 2, kUpperHalves = 1 << 2;
  unsigned features = 0, b, c, d;
  if (!__get_cpuid_count(0xd, 1, &features, &b, &c, &d) || !(features & kTells)) return false;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return low & kUpperHalves;
#else
  return false;
#endif
}

void transposing_leaves_clean_registers() {
  if (upper_halves_are_full()) return;  // they always are, then
  for (int64_t item : {1, 2, 4, 8, 16})
    for (int64_t rows : {2, 3, 16, 40, 100})
      for (int64_t columns : {2, 3, 16, 40, 100}) {
        std::vector<char> from(size_t(rows * columns * item)), to(from.size());
        copy_strided(Shape{rows, columns}, item, to.data(), Shape{columns * item, item},
                     from.data(), Shape{item, rows * item});
        expect(!upper_halves_are_full());
      }
}

}  // namespace

int main() { transposing_leaves_clean_registers(); }
