// Owns the arguments of the kernels that draw random numbers, as host and device both see them.
#pragma once

#include <stdint.h>

#include "core/device/philox.h"

namespace rushlight {

// What a draw fills a tensor with.
struct DrawArgs {
  double first = 0, second = 0;  // the numbers of the distribution, see Distribution
  double least = 0, most = 0;    // what results are limited to, where the dtype holds no more
  uint64_t low = 0, last = 0;    // integers from low to low + last
  int32_t bits = 24;             // random bits of a uniform float
};

// Which piece of the stream a draw has, and where its numbers go.
struct DrawPlace {
  PhiloxDraw draw;
  void* out;  // `numel` elements, row-major
  int64_t numel;
};

struct DropoutArgs {
  const void* input;  // all in one order
  bool* mask;
  double scale;
  uint32_t threshold;
};

}  // namespace rushlight
