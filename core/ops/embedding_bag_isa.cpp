// Owns the loops over bags of rows, compiled once per instruction set.
#include "core/ops/embedding_bag_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int64_t kWidth = 64;  // columns that are in work at once

// Index counts the rows of a bag; it is as wide as T, so that both fit the same vectors.
template <class T, class Index>
[[gnu::always_inline]] inline void maxima_of_columns(const T* table, const int64_t* rows,
                                                     int64_t count, int64_t columns, int64_t width,
                                                     T* best, int64_t* places) {
  T largest[kWidth];
  Index found[kWidth];
  const T* first = table + rows[0] * columns;
  for (int64_t c = 0; c < width; ++c) {
    largest[c] = first[c];
    found[c] = 0;
  }
  for (int64_t i = 1; i < count; ++i) {
    const T* x = table + rows[i] * columns;
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) {
      bool is_larger = x[c] > largest[c];
      largest[c] = is_larger ? x[c] : largest[c];
      found[c] = is_larger ? Index(i) : found[c];
    }
  }
  for (int64_t c = 0; c < width; ++c) {
    best[c] = largest[c];
    places[c] = rows[found[c]];
  }
}

template <class T, class Index>
void maxima(const void* table_in, const int64_t* rows, int64_t count, int64_t columns,
            void* best_out, int64_t* places) {
  const T* table = static_cast<const T*>(table_in);
  T* best = static_cast<T*>(best_out);
  int64_t c = 0;
  for (; c + kWidth <= columns; c += kWidth)
    maxima_of_columns<T, Index>(table + c, rows, count, columns, kWidth, best + c, places + c);
  if (c < columns)
    maxima_of_columns<T, Index>(table + c, rows, count, columns, columns - c, best + c, places + c);
}

}  // namespace

extern const BagLoops bag_loops;
constexpr BagLoops bag_loops = {{&maxima<float, int32_t>, &maxima<double, int64_t>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
