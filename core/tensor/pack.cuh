// Owns Pack: neighboring elements that a thread moves by as few loads or stores as it can, of up to
// 16 bytes each.
#pragma once

namespace rushlight::on_cuda {

template <class T, int count>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) Pack {
  T at[count];
};

// A Pack that a thread keeps: as words, since elements of 16 bits would take a register each.
template <class T, int count>
struct alignas(alignof(Pack<T, count>)) Words {
  uint32_t at[sizeof(Pack<T, count>) / sizeof(uint32_t)];
  Pack<T, count> elements() const { return __builtin_bit_cast(Pack<T, count>, *this); }
};

}  // namespace rushlight::on_cuda
