// Owns ceil_div and round_up: how many parts of a size cover a number of elements, and how many
// elements these parts have.
#pragma once

#include <cstdint>

namespace rushlight {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

constexpr int64_t round_up(int64_t a, int64_t multiple) { return ceil_div(a, multiple) * multiple; }

}  // namespace rushlight
