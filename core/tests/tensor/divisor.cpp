// Division by a product and a shift gives what the processor's division gives.
#include "core/tensor/divisor.h"

#include "core/tests/expect.h"

using namespace rushlight;

int main() {
  constexpr uint32_t kMost = (uint32_t(1) << 31) - 1;
  auto check = [](uint32_t value, uint32_t number) {
    expect(Divisor::of(value).quotient(number) == number / value);
  };
  for (uint32_t value = 1; value < 200; ++value)
    for (uint32_t number = 0; number < 1000; ++number) check(value, number);
  uint64_t state = 1;
  auto random = [&] { return uint32_t((state = state * 6364136223846793005u + 1) >> 33); };
  for (int i = 0; i < 100000; ++i) {
    uint32_t value = 1 + (random() >> i % 31) % kMost;
    for (uint32_t number : {uint32_t(0), value - 1, value, random(), kMost - 1, kMost})
      check(value, number);
    uint64_t multiple = uint64_t(kMost / value) * value;
    check(value, uint32_t(multiple));
    if (multiple > 0) check(value, uint32_t(multiple - 1));
  }
  check(kMost, kMost);
}
