// Owns a count of memory in use, of bytes or of blocks, as statistics show it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rushlight {

struct MemoryCount {
  int64_t current = 0, peak = 0, total = 0;  // total: all that was ever added

  void change(int64_t amount) {
    current += amount;
    total += std::max<int64_t>(amount, 0);
    peak = std::max(peak, current);
  }
};

}  // namespace rushlight
