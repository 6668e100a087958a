// Owns where elements may lie in memory that others lend: at addresses that are multiples of their
// alignment, which the compiler relies on when it vectorizes loops.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/error.h"

namespace rushlight {

constexpr size_t dtype_alignment(DType dtype) {
  return dtype_size(dtype) / (is_complex(dtype) ? 2 : 1);
}
inline bool is_aligned(const void* address, DType dtype) {
  return reinterpret_cast<uintptr_t>(address) % dtype_alignment(dtype) == 0;
}
inline void check_aligned(const void* address, DType dtype) {
  CHECK(is_aligned(address, dtype), ErrorKind::kValue, "the memory is not aligned: elements of ",
        dtype_name(dtype), " must begin at a multiple of ", dtype_alignment(dtype),
        " bytes. Make a copy first.");
}

// The largest power of two up to `most`, which is one, that an address is a multiple of.
inline uintptr_t alignment_of(const void* address, uintptr_t most) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(address) | most;
  return bits & (~bits + 1);
}

}  // namespace rushlight
