// Owns prefetch, for memory that the processor does not see coming: the next run of a buffered
// walk, rows at random places.
#pragma once

#include <stdint.h>

namespace rushlight {

// Asks for memory that is read soon, so that it comes while something else is computed. Harmless
// past the end.
inline void prefetch(const void* from, int64_t bytes) {
  constexpr int64_t kCacheLine = 64;
  for (int64_t i = 0; i < bytes; i += kCacheLine)
    __builtin_prefetch(static_cast<const char*>(from) + i);
}

}  // namespace rushlight
