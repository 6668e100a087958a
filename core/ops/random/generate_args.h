// Owns the sequences of arange, linspace and logspace: element i as host and device compute it.
#pragma once

#include <math.h>
#include <stdint.h>

namespace rushlight {

// first, first + by, first + 2 * by, ...
struct Range {
  uint64_t first, by;  // of integers, which wrap around
  double real_first, real_by;

  int64_t integer(int64_t i) const { return int64_t(first + uint64_t(i) * by); }
  double real(int64_t i) const { return real_first + double(i) * real_by; }
};

// `steps` numbers from first to last, both exact; powers of `base` with such exponents if is_power.
struct Spaced {
  double first, last, by, base;
  int64_t steps;
  bool is_power;

  int64_t integer(int64_t i) const { return int64_t(real(i)); }
  double real(int64_t i) const {
    // Rounded once, as PyTorch's are: metrics compare such numbers for equality.
    double x =
        i < steps / 2 ? ::fma(double(i), by, first) : ::fma(-double(steps - 1 - i), by, last);
    return is_power ? ::pow(base, x) : x;
  }
};

}  // namespace rushlight
