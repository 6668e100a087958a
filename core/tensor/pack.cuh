// Owns Pack: neighboring elements that a thread moves by as few loads or stores as it can, of up to
// 16 bytes each.
#pragma once

namespace rushlight::on_cuda {

template <class T, int count>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) Pack {
  T at[count];
};

}  // namespace rushlight::on_cuda
