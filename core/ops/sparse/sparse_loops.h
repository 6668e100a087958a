// Owns the shape of the loops over sparse matrices that are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Some lines (rows, or columns) of a sparse matrix: see EntryOrder in tensor/sparse.h.
struct SparseLines {
  const int64_t *start, *other, *entry;  // entry is null when the values are in this order
  int64_t begin, end;
};

struct SparseLoops {
  // out[i, :] = the sum of values[e] * dense[other[e], :] over the entries of line i. Rows of
  // dense and out lie n elements apart. For float and double.
  void (*multiply[2])(const SparseLines& lines, const void* values, const void* dense, int64_t n,
                      void* out);
  // out[e] = left[i, :] . right[other[e], :] for each entry of line i.
  void (*dots[2])(const SparseLines& lines, const void* left, const void* right, int64_t n,
                  void* out);
};

}  // namespace rushlight
