// Owns ceil_div: how many parts of a size cover a number of elements.
#pragma once

#include <cstdint>

namespace rushlight {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace rushlight
