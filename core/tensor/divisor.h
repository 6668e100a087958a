// Owns divisions of small numbers by one that is known beforehand, as host and device both see
// them: a product and a shift, where the GPU takes some twenty instructions to divide.
#pragma once

#include <cstdint>

namespace rushlight {

// Source: Granlund, Montgomery, "Division by invariant integers using multiplication", 1994, in the
// form for dividends below 2^31, where the sum does not overflow.
struct Divisor {
  uint32_t magic, shift;

  static constexpr Divisor of(uint32_t value) {
    uint32_t shift = 0;
    while ((uint64_t(1) << shift) < value) ++shift;
    uint64_t rest = (uint64_t(1) << shift) - value;
    return {uint32_t((rest << 32) / value + 1), shift};
  }
  constexpr uint32_t quotient(uint32_t number) const {
    return (uint32_t(uint64_t(number) * magic >> 32) + number) >> shift;
  }
};

}  // namespace rushlight
