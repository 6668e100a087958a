// Owns the loops over matrices of blocks, compiled once per instruction set. A tile of a product
// stays in registers while all blocks of its line go by.
#include "core/ops/sparse/sparse_loops.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Tiles that fit the 32 registers of AVX-512, or 16.
constexpr int kRows = RUSHLIGHT_ISA == 4 ? 8 : 4;
constexpr int kVectors = 3;
constexpr int kDotRows = RUSHLIGHT_ISA == 4 ? 4 : 2;
constexpr int kDotColumns = 4;
constexpr int64_t kChunkBytes = 1024;  // of the rows that blocks of dots are made from

// Some rows of a line of blocks, which begin at values and out, times a panel.
template <class T, int rows, int vectors>
void multiply_tile(const SparseLines& lines, int64_t line, const SparseBlocks& blocks,
                   const T* values, const T* panel, int64_t columns, int64_t n, T* out) {
  constexpr int64_t width = vectors * kWidth<T>;
  Vector<T> sums[rows][vectors] = {};
  for (int64_t k = lines.start[line]; k < lines.start[line + 1]; ++k) {
    const T* block = values + (lines.entry ? lines.entry[k] : k) * blocks.rows * blocks.columns;
    const T* x = panel + lines.other[k] * blocks.columns * width;
    for (int64_t c = 0; c < blocks.columns; ++c, block += blocks.column_step, x += width) {
      Vector<T> right[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) right[v] = load_vector(x + v * kWidth<T>);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        Vector<T> left = broadcast(block[r * blocks.row_step]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sums[r][v] = multiply_add(left, right[v], sums[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r, out += n) {
    if (columns == width) {
      __builtin_memcpy(out, sums[r], sizeof(sums[r]));
    } else {
      T row[width];
      __builtin_memcpy(row, sums[r], sizeof(row));
      for (int64_t j = 0; j < columns; ++j) out[j] = row[j];
    }
  }
}

// The rows from `row` on of a line of blocks.
template <class T, int rows, int vectors>
void multiply_line(const SparseLines& lines, int64_t line, const SparseBlocks& blocks,
                   const T* values, const T* panel, int64_t columns, int64_t n, T* out,
                   int64_t row) {
  for (; row + rows <= blocks.rows; row += rows)
    multiply_tile<T, rows, vectors>(lines, line, blocks, values + row * blocks.row_step, panel,
                                    columns, n, out + row * n);
  if constexpr (rows > 1)
    multiply_line<T, rows / 2, vectors>(lines, line, blocks, values, panel, columns, n, out, row);
}

// At most kVectors vectors of columns of the product, which begin at dense and out.
template <class T, int vectors>
void multiply_panel(const SparseLines& lines, const SparseBlocks& blocks, const T* values,
                    const T* dense, int64_t height, int64_t columns, int64_t n, T* out, T* panel) {
  if constexpr (vectors > 1)
    if (columns <= (vectors - 1) * kWidth<T>)
      return multiply_panel<T, vectors - 1>(lines, blocks, values, dense, height, columns, n, out,
                                            panel);
  constexpr int64_t width = vectors * kWidth<T>;
  // Side by side, for rows of dense may lie apart by what a cache maps to one place.
  for (int64_t i = 0; i < height; ++i) {
    T* to = panel + i * width;
    for (int64_t j = 0; j < columns; ++j) to[j] = dense[i * n + j];
    for (int64_t j = columns; j < width; ++j) to[j] = T(0);
  }
  for (int64_t line = lines.begin; line < lines.end; ++line)
    multiply_line<T, kRows, vectors>(lines, line, blocks, values, panel, columns, n,
                                     out + line * blocks.rows * n, 0);
}

template <class T>
void multiply(const SparseLines& lines, const SparseBlocks& blocks, const void* values,
              const void* dense, int64_t height, int64_t begin, int64_t end, int64_t n, void* out,
              void* panel) {
  constexpr int64_t width = kVectors * kWidth<T>;
  for (int64_t j = begin; j < end; j += width)
    multiply_panel<T, kVectors>(
        lines, blocks, static_cast<const T*>(values), static_cast<const T*>(dense) + j, height,
        end - j < width ? end - j : width, n, static_cast<T*>(out) + j, static_cast<T*>(panel));
}

// The dot products of some rows of left and some of right; `row` is how far rows of out lie apart.
template <class T, int rows, int columns>
void dot_tile(const T* left, const T* right, int64_t n, int64_t length, T* out, int64_t row,
              bool adds) {
  Vector<T> sums[rows][columns] = {};
  int64_t whole = length / kWidth<T> * kWidth<T>;
  for (int64_t j = 0; j < whole; j += kWidth<T>) {
    Vector<T> b[columns];
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) b[c] = load_vector(right + c * n + j);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      Vector<T> a = load_vector(left + r * n + j);
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) sums[r][c] = multiply_add(a, b[c], sums[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
      T sum = adds ? out[r * row + c] : T(0);
      for (int lane = 0; lane < kWidth<T>; ++lane) sum += sums[r][c][lane];
      for (int64_t j = whole; j < length; ++j) sum += left[r * n + j] * right[c * n + j];
      out[r * row + c] = sum;
    }
}

// The columns from `column` on, of `size`, for some rows; then all columns for the rows from `row`
// on.
template <class T, int rows, int columns>
void dot_columns(const T* left, const T* right, int64_t n, int64_t length, T* out, int64_t size,
                 bool adds, int64_t column) {
  for (; column + columns <= size; column += columns)
    dot_tile<T, rows, columns>(left, right + column * n, n, length, out + column, size, adds);
  if constexpr (columns > 1)
    dot_columns<T, rows, columns / 2>(left, right, n, length, out, size, adds, column);
}
template <class T, int rows>
void dot_rows(const T* left, const T* right, int64_t n, int64_t length, T* out,
              const SparseBlocks& blocks, bool adds, int64_t row) {
  for (; row + rows <= blocks.rows; row += rows)
    dot_columns<T, rows, kDotColumns>(left + row * n, right, n, length, out + row * blocks.columns,
                                      blocks.columns, adds, 0);
  if constexpr (rows > 1) dot_rows<T, rows / 2>(left, right, n, length, out, blocks, adds, row);
}

template <class T>
void dots(const SparseLines& lines, const SparseBlocks& blocks, const void* left_in,
          const void* right_in, int64_t n, void* out_in) {
  constexpr int64_t chunk = kChunkBytes / int64_t(sizeof(T));
  for (int64_t line = lines.begin; line < lines.end; ++line) {
    const T* left = static_cast<const T*>(left_in) + line * blocks.rows * n;
    int64_t j = 0;
    do {
      int64_t length = n - j < chunk ? n - j : chunk;
      for (int64_t k = lines.start[line]; k < lines.start[line + 1]; ++k) {
        int64_t entry = lines.entry ? lines.entry[k] : k;
        const T* right = static_cast<const T*>(right_in) + lines.other[k] * blocks.columns * n;
        dot_rows<T, kDotRows>(left + j, right + j, n, length,
                              static_cast<T*>(out_in) + entry * blocks.rows * blocks.columns,
                              blocks, j > 0, 0);
      }
      j += chunk;
    } while (j < n);
  }
}

}  // namespace

extern const BlockLoops block_loops;
constexpr BlockLoops block_loops = {{multiply<float>, multiply<double>},
                                    {kVectors * kWidth<float>, kVectors * kWidth<double>},
                                    {dots<float>, dots<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
