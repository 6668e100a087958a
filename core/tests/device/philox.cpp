// Philox against the known answers of Random123 (kat_vectors, philox4x32 with 10 rounds).
#include "core/device/philox.h"

#include "core/tests/expect.h"

using namespace rushlight;

namespace {

bool equal(Philox4 a, Philox4 b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; }

}  // namespace

int main() {
  constexpr uint32_t kOnes = 0xffffffff;
  static_assert(philox4x32({0, 0, 0, 0}, {0, 0}).x == 0x6627e8d5);
  expect(equal(philox4x32({0, 0, 0, 0}, {0, 0}), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  expect(equal(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
               {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // The digits of pi.
  expect(
      equal(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));

  // Both words of the seed and of the counter matter.
  expect(equal(philox(0x299f31d0a4093822, 0x85a308d3243f6a88),
               philox4x32({0x243f6a88, 0x85a308d3, 0, 0}, {0xa4093822, 0x299f31d0})));

  expect(philox_counters(0, 1) == 0 && philox_counters(1, 1) == 1 && philox_counters(4, 1) == 1);
  expect(philox_counters(5, 1) == 2 && philox_counters(5, 2) == 3);

  expect(uniform_float(0) == 0.0f && uniform_float(0x80000000) == 0.5f);
  expect(uniform_float(kOnes) == 1 - 0x1p-24f);
  expect(uniform_double(0, 0) == 0.0 && uniform_double(0, 0x80000000) == 0.5);
  expect(uniform_double(kOnes, kOnes) == 1 - 0x1p-53);
}
