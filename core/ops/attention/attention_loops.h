// Declares the vectorized loops of attention, compiled once per instruction set.
//
// A tile is rows of T, `ld` elements apart. Tiles that multiply(), transpose() and exponentials()
// touch have room for whole multiples of kAttentionLanes elements in each row, and those for
// transpose() also in rows; what lies there beyond the tile is zero or never read.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

inline constexpr int64_t kAttentionLanes = 16;
constexpr int64_t padded(int64_t n) {
  return (n + kAttentionLanes - 1) / kAttentionLanes * kAttentionLanes;
}

// How many keys the rows of a tile of scores see: row r sees `first + r * step`, within [0, width].
struct VisibleKeys {
  int64_t width, first, step;
};

template <class T>
struct AttentionLoopsOf {
  // c = a @ b, added to c if `add`. a is m x k with any strides, b k x n, c m x n; n is a multiple
  // of kAttentionLanes.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column,
                   const T* b, int64_t ldb, T* c, int64_t ldc, bool add);
  // to[c][r] = scale * from[r][c], for multiples of kAttentionLanes rows and columns.
  void (*transpose)(const T* from, int64_t ld, int64_t rows, int64_t columns, T scale, T* to,
                    int64_t to_ld);
  // scores += mask, or -inf where a mask of bools is false; mask_row is the step between its rows.
  void (*add_mask)(T* scores, int64_t ld, int64_t rows, int64_t width, const T* mask,
                   int64_t mask_row);
  void (*block)(T* scores, int64_t ld, int64_t rows, int64_t width, const uint8_t* mask,
                int64_t mask_row);
  // The online softmax: turns scores into exp(scores - largest), where `largest` is that of each
  // row so far, and brings the sums `total` and the rows of `out` from the old largest to the new.
  // Scores that a row does not see become 0.
  void (*exponentials)(T* scores, int64_t ld, int64_t rows, VisibleKeys keys, T* largest, T* total,
                       T* out, int64_t out_ld, int64_t columns);
  // Turns scores into probabilities exp(scores - logsumexp), and the gradients of these into those
  // of the scores: probability * (gradient - dot), where dot belongs to the row.
  void (*score_grads)(T* scores, T* grads, int64_t ld, int64_t rows, VisibleKeys keys,
                      const T* logsumexp, const T* dots);
  T (*dot)(const T* x, const T* y, int64_t n);
  void (*scale)(T* x, T factor, int64_t n);
  void (*add)(T* x, const T* y, int64_t n);
};

struct AttentionLoops {
  AttentionLoopsOf<float> f32;
  AttentionLoopsOf<double> f64;
};

}  // namespace rushlight
