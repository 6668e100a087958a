// Owns Staged: dense memory that a kernel sees in another dtype, run by run through a buffer of the
// thread that stays in its L1 cache. This is how half types are computed in float without a float
// copy of the whole tensor. Memory of the kernel's own dtype is seen directly.
#pragma once

#include "core/tensor/prefetch.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

inline constexpr int64_t kStagedRun = 1024;  // elements that callers should take at a time
inline constexpr int kStagingSlots = 3;

// Memory of this thread, valid until it asks for the same slot again.
void* staging_buffer(int slot, size_t bytes);

// `slot` tells the operands of one kernel apart, so that each has its buffer.
template <class T, int slot>
class Staged {
  static_assert(slot < kStagingSlots);

 public:
  explicit Staged(const Tensor& tensor)
      : data_(static_cast<char*>(tensor.data())), item_(int64_t(tensor.itemsize())) {
    if (tensor.dtype() == dtype_of<T>) return;
    load_ = cast_loop(tensor.dtype(), dtype_of<T>);
    store_ = cast_loop(dtype_of<T>, tensor.dtype());
  }

  // Elements [at, at + n); valid until the thread asks for others of this slot.
  const T* read(int64_t at, int64_t n) const {
    if (!load_) return reinterpret_cast<const T*>(data_) + at;
    T* buffer = place(at, n);
    load_(data_ + at * item_, buffer, n);
    // The next run is most often the next in memory, and comes while the kernel computes.
    prefetch(data_ + (at + n) * item_, n * item_);
    return buffer;
  }
  // Where the kernel may write elements [at, at + n); store() brings them home.
  T* place(int64_t at, int64_t n) const {
    if (!load_) return reinterpret_cast<T*>(data_) + at;
    return static_cast<T*>(staging_buffer(slot, size_t(n) * sizeof(T)));
  }
  void store(int64_t at, const T* values, int64_t n) const {
    if (store_) store_(values, data_ + at * item_, n);
  }

 private:
  char* data_;
  int64_t item_;
  CastLoop load_ = nullptr, store_ = nullptr;
};

}  // namespace rushlight
