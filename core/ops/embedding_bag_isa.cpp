// Owns the loops over bags of rows, compiled once per instruction set.
#include <stdint.h>

#include "core/ops/embedding_bag_loops.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Vectors of columns, in registers while the rows go by. Index counts the rows of a bag; it is as
// wide as T, so that comparisons of one select the other.
template <int count, class Index, class T>
void maxima_of_block(const T* table, const int64_t* rows, int64_t row_count, int64_t columns,
                     T* best, int64_t* places) {
  Vector<T> largest[count];
  Vector<Index> found[count] = {};
  for (int v = 0; v < count; ++v)
    largest[v] = load_vector(table + rows[0] * columns + v * kWidth<T>);
  for (int64_t i = 1; i < row_count; ++i) {
    const T* row = table + rows[i] * columns;
#pragma GCC unroll 4
    for (int v = 0; v < count; ++v) {
      Vector<T> x = load_vector(row + v * kWidth<T>);
      auto is_larger = x > largest[v];
      largest[v] = is_larger ? x : largest[v];
      found[v] = is_larger ? broadcast(Index(i)) : found[v];
    }
  }
  for (int v = 0; v < count; ++v) {
    store_vector(best + v * kWidth<T>, largest[v]);
    for (int l = 0; l < kWidth<T>; ++l) places[v * kWidth<T> + l] = rows[found[v][l]];
  }
}

template <class T, class Index>
void maxima(const void* table_in, const int64_t* rows, int64_t count, int64_t columns,
            void* best_out, int64_t* places) {
  constexpr int kVectors = 4;
  constexpr int64_t kMany = kVectors * kWidth<T>;
  const T* table = static_cast<const T*>(table_in);
  T* best = static_cast<T*>(best_out);
  int64_t c = 0;
  for (; c + kMany <= columns; c += kMany)
    maxima_of_block<kVectors, Index>(table + c, rows, count, columns, best + c, places + c);
  for (; c + kWidth<T> <= columns; c += kWidth<T>)
    maxima_of_block<1, Index>(table + c, rows, count, columns, best + c, places + c);
  for (; c < columns; ++c) {
    int64_t place = rows[0];
    for (int64_t i = 1; i < count; ++i)
      if (table[rows[i] * columns + c] > table[place * columns + c]) place = rows[i];
    best[c] = table[place * columns + c];
    places[c] = place;
  }
}

}  // namespace

extern const BagLoops bag_loops;
constexpr BagLoops bag_loops = {{&maxima<float, int32_t>, &maxima<double, int64_t>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
