// Owns the shape of the loops over sparse matrices that are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Some lines (rows, or columns) of a sparse matrix: see EntryOrder in tensor/sparse.h.
struct SparseLines {
  const int64_t *start, *other, *entry;  // entry is null when the values are in this order
  int64_t begin, end;
};

// What the entries of a line are, of a matrix transposed or not: blocks of rows x columns elements
// that lie so many steps apart. Entries that are elements are blocks of 1 x 1.
struct SparseBlocks {
  int64_t rows = 1, columns = 1, row_step = 1, column_step = 1;

  int64_t size() const { return rows * columns; }
};

struct SparseLoops {
  // out[i, :] = the sum of values[e] * dense[other[e], :] over the entries of line i. Rows of
  // dense and out lie n elements apart. For float, double, and float16 and bfloat16, whose sums are
  // float.
  void (*multiply[4])(const SparseLines& lines, const void* values, const void* dense, int64_t n,
                      void* out);
  // out[e] = left[i, :] . right[other[e], :] for each entry of line i.
  void (*dots[2])(const SparseLines& lines, const void* left, const void* right, int64_t n,
                  void* out);
};

// The same where entries are blocks.
struct BlockLoops {
  // Columns [begin, end) of the product with a dense matrix of `height` rows. `panel` is memory for
  // height x panel_columns elements.
  void (*multiply[2])(const SparseLines& lines, const SparseBlocks& blocks, const void* values,
                      const void* dense, int64_t height, int64_t begin, int64_t end, int64_t n,
                      void* out, void* panel);
  int64_t panel_columns[2];
  // Block e of out, not transposed = rows of left for line i times rows of right for other[e].
  void (*dots[2])(const SparseLines& lines, const SparseBlocks& blocks, const void* left,
                  const void* right, int64_t n, void* out);
};

}  // namespace rushlight
