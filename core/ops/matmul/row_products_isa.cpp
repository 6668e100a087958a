// Owns the products of one row with a matrix where it lies. Sums have as many lanes on every
// processor.
#include "core/ops/matmul/row_products.h"

#include "core/tensor/wide_load.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Lane i becomes the sum of the lanes of v[i].
template <class T>
[[gnu::always_inline]] inline Vector<T> sums_of_lanes(Vector<T> (&v)[kWidth<T>]) {
#pragma GCC unroll 4
  for (int half = kWidth<T> / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i)
      v[i] = interleave<T, 0>(v[i], v[i + half]) + interleave<T, 1>(v[i], v[i + half]);
  }
  return v[0];
}

template <class T, class Element>
void dots(const T* x, const void* matrix, int64_t step, int64_t rows, int64_t columns, T* out) {
  constexpr int kParts = int(kRowProductColumns) / kWidth<T>;
  constexpr int kTogether =
      kWidth<T> < 4 ? kWidth<T> : 4;  // rows, whose chains of additions overlap
  const Element* from = static_cast<const Element*>(matrix);
  for (int64_t r = 0; r < rows; r += kWidth<T>) {
    Vector<T> sums[kWidth<T>];
#pragma GCC unroll 4
    for (int first = 0; first < kWidth<T>; first += kTogether) {
      const Element* row[kTogether];
      Vector<T> parts[kTogether][kParts] = {};
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i) {
        int64_t at = r + first + i;
        row[i] = from + (at < rows ? at : rows - 1) * step;
      }
      for (int64_t c = 0; c < columns; c += kRowProductColumns) {
#pragma GCC unroll 4
        for (int p = 0; p < kParts; ++p) {
          const Vector<T> left = load_vector(x + c + p * kWidth<T>);
#pragma GCC unroll 4
          for (int i = 0; i < kTogether; ++i)
            parts[i][p] = multiply_add(left, load_wide(row[i] + c + p * kWidth<T>), parts[i][p]);
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i) {
#pragma GCC unroll 4
        for (int half = kParts / 2; half > 0; half /= 2)
#pragma GCC unroll 4
          for (int p = 0; p < half; ++p) parts[i][p] = parts[i][p] + parts[i][p + half];
        sums[first + i] = parts[i][0];
      }
    }
    const Vector<T> all = sums_of_lanes<T>(sums);
    if (r + kWidth<T> <= rows) {
      store_vector(out + r, all);
    } else {
      T line[kWidth<T>];
      store_vector(line, all);
      for (int64_t i = 0; r + i < rows; ++i) out[r + i] = line[i];
    }
  }
}

// For as many columns as `vectors` have.
template <class T, class Element, int vectors>
void add_columns(const T* x, const Element* matrix, int64_t step, int64_t rows, T* out) {
  Vector<T> sums[vectors];
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) sums[v] = load_vector(out + v * kWidth<T>);
  for (int64_t r = 0; r < rows; ++r, matrix += step) {
    const Vector<T> left = broadcast(x[r]);
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v)
      sums[v] = multiply_add(left, load_wide(matrix + v * kWidth<T>), sums[v]);
  }
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) store_vector(out + v * kWidth<T>, sums[v]);
}

// Columns in groups of as many, then of fewer.
template <class T, class Element, int vectors>
void add_groups(const T* x, const Element* matrix, int64_t step, int64_t rows, int64_t columns,
                T* out) {
  constexpr int64_t kColumns = vectors * kWidth<T>;
  for (; columns >= kColumns; columns -= kColumns, matrix += kColumns, out += kColumns)
    add_columns<T, Element, vectors>(x, matrix, step, rows, out);
  if constexpr (vectors > 1)
    if (columns > 0) add_groups<T, Element, vectors / 2>(x, matrix, step, rows, columns, out);
}

template <class T, class Element>
void add_rows(const T* x, const void* matrix, int64_t step, int64_t rows, int64_t columns, T* out) {
  add_groups<T, Element, 8>(x, static_cast<const Element*>(matrix), step, rows, columns, out);
}

template <class T, class Element>
constexpr RowProducts<T> loops_of() {
  return {&dots<T, Element>, &add_rows<T, Element>};
}

}  // namespace

extern const RowProductLoops row_product_loops;
constexpr RowProductLoops row_product_loops = {loops_of<float, float>(), loops_of<float, Half>(),
                                               loops_of<float, BFloat16>(),
                                               loops_of<double, double>()};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
