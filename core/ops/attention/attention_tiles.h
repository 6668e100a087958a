// Owns what the kernels of attention on the CPU share: how rows of tensors become tiles, and masks.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/device/allocator.h"
#include "core/device/threads.h"
#include "core/ops/attention/attention.h"
#include "core/ops/attention/attention_loops.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(AttentionLoops, attention_loops)

// Defined in attention_bfloat16.cpp and attention_one_query.cpp: false, having done nothing, where
// that is not the faster way.
bool attention_of_bfloat16(const Attention& attention, const Tensor& output,
                           const Tensor& logsumexp);
bool attention_of_one_query(const Attention& attention, const Tensor& output,
                            const Tensor& logsumexp);

namespace attention_cpu_detail {

template <class T>
const AttentionLoopsOf<T>& loops() {
  return active_of<T>(attention_loops_sets);
}

// The features of a tensor, as elements of a tile's row: few enough that no tile's size overflows.
inline int64_t padded_features(const Tensor& t) {
  CHECK(t.size(-1) <= std::numeric_limits<int32_t>::max(), "a tensor of shape ", t.sizes(),
        " has too many features: there may be 2^31 - 1.");
  return padded(t.size(-1));
}

// The memory of one thread, handed out in aligned pieces.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t elements) : buffer_(size_t(elements) * sizeof(T)) {}
  T* take(int64_t elements) {
    T* piece = static_cast<T*>(buffer_.data()) + taken_;
    taken_ += padded(elements);
    return piece;
  }

 private:
  CpuBuffer buffer_;
  int64_t taken_ = 0;
};

// The rows of one tensor, by batch item.
template <class T>
class Rows {
 public:
  Rows(const Tensor& t, ShapeRef batch)
      : batch_(batch),
        data_(static_cast<char*>(t.address())),
        item_(int64_t(t.itemsize())),
        columns_(t.size(-1)),
        load_(cast_loop(t.dtype(), dtype_of<T>)),
        store_(cast_loop(dtype_of<T>, t.dtype())),
        is_plain_(t.dtype() == dtype_of<T>) {
    Shape sizes(batch);
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    strides_ = broadcast_strides(t, sizes);
    column_ = columns_ == 1 ? 1 : strides_.back();
    strides_.pop_back();
    row_ = strides_.back();
    strides_.pop_back();
  }

  // Where the rows of a batch item begin.
  char* item(int64_t index) const { return data_ + offset_of(batch_, strides_, index) * item_; }

  // Brings rows into a tile, with zeros up to its `ld`.
  void load(const char* item, int64_t first, int64_t rows, T* to, int64_t ld) const {
    const char* from = item + first * row_ * item_;
    for (int64_t r = 0; r < rows; ++r, from += row_ * item_, to += ld) {
      if (column_ != 1) load_scattered(from, to);
      else if (is_plain_) std::memcpy(to, from, size_t(columns_) * sizeof(T));
      else load_(from, to, columns_);
      std::fill(to + columns_, to + ld, T(0));
    }
  }
  // The rows where they lie, when that is in the way of load(), else as that leaves them in `to`,
  // with `more` rows of zeros.
  const T* tile(const char* item, int64_t first, int64_t rows, T* to, int64_t ld,
                int64_t more = 0) const {
    if (is_plain_ && column_ == 1 && columns_ == ld && row_ == ld && more == 0)
      return reinterpret_cast<const T*>(item) + first * ld;
    load(item, first, rows, to, ld);
    std::fill_n(to + rows * ld, more * ld, T(0));
    return to;
  }
  // The reverse for one row; elements of a row lie side by side.
  void store(char* item, int64_t row, const T* from) const {
    char* to = item + row * row_ * item_;
    if (is_plain_) std::memcpy(to, from, size_t(columns_) * sizeof(T));
    else store_(from, to, columns_);
  }
  int64_t columns() const { return columns_; }

 private:
  void load_scattered(const char* from, T* to) const {
    alignas(64) char run[64 * sizeof(T)];
    for (int64_t c = 0; c < columns_; c += 64) {
      int64_t n = std::min<int64_t>(64, columns_ - c);
      copy_run(run, item_, from + c * column_ * item_, column_ * item_, item_, n);
      load_(run, to + c, n);
    }
  }

  ShapeRef batch_;
  char* data_;
  int64_t item_, columns_;
  CastLoop load_, store_;
  bool is_plain_;
  Shape strides_;  // of the batch dims
  int64_t row_, column_;
};

// A mask whose keys lie side by side, or none.
template <class T>
class Mask {
 public:
  Mask(const Attention& a) : batch_(a.batch) {
    if (!a.mask.defined()) return;
    Shape sizes(a.batch);
    sizes.push_back(a.queries());
    sizes.push_back(a.keys());
    mask_ = a.mask;
    if (broadcast_strides(mask_, sizes).back() != 1) {
      Shape full(mask_.sizes()), strides(mask_.strides());
      if (full.back() == 1) strides.back() = 0;
      full.back() = a.keys();
      mask_ = to_contiguous(alias(mask_, full, strides, mask_.offset()));
    }
    strides_ = broadcast_strides(mask_, sizes);
    strides_.pop_back();
    row_ = strides_.back();
    strides_.pop_back();
  }

  // Masks a tile of scores, with rows of `ld` elements, that begins at (query, key).
  void apply(int64_t index, int64_t query, int64_t key, T* scores, int64_t ld, int64_t rows,
             int64_t width) const {
    if (!mask_.defined()) return;
    int64_t at = offset_of(batch_, strides_, index) + query * row_ + key;
    if (is_bool(mask_.dtype()))
      loops<T>().block(scores, ld, rows, width, mask_.data<uint8_t>() + at, row_);
    else loops<T>().add_mask(scores, ld, rows, width, mask_.data<T>() + at, row_);
  }

 private:
  ShapeRef batch_;
  Tensor mask_;
  Shape strides_;
  int64_t row_ = 0;
};

// How many of these a thread should have at least, `work` multiplications each.
inline int64_t grain(double work) { return int64_t(kMultiplicationsPerThread / (work + 1)) + 1; }

inline double work(const Attention& a) {
  return double(a.queries()) * double(a.keys()) * double(a.query.size(-1) + a.value.size(-1));
}

}  // namespace attention_cpu_detail
}  // namespace rushlight
