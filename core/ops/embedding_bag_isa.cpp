// Owns the loops over bags of rows, compiled once per instruction set.
#include <stdint.h>

#include "core/ops/embedding_bag_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int64_t kVectorBytes = 64;

// kVectors vectors of columns, in registers while the rows go by. Index counts the rows of a bag;
// it is as wide as T, so that comparisons of one select the other.
template <class T, class Index, int kVectors>
void maxima_of_block(const T* table, const int64_t* rows, int64_t count, int64_t columns, T* best,
                     int64_t* places) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  typedef Index Indices __attribute__((vector_size(kVectorBytes)));
  constexpr int64_t kWidth = kVectorBytes / int64_t(sizeof(T));
  Vector largest[kVectors];
  Indices found[kVectors] = {};
  __builtin_memcpy(largest, table + rows[0] * columns, sizeof(largest));
  for (int64_t i = 1; i < count; ++i) {
    const T* row = table + rows[i] * columns;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Vector x;
      __builtin_memcpy(&x, row + v * kWidth, kVectorBytes);
      auto is_larger = x > largest[v];
      largest[v] = is_larger ? x : largest[v];
      found[v] = is_larger ? Indices{} + Index(i) : found[v];
    }
  }
  __builtin_memcpy(best, largest, sizeof(largest));
  Index number[kVectors * kWidth];
  __builtin_memcpy(number, found, sizeof(found));
  for (int64_t c = 0; c < kVectors * kWidth; ++c) places[c] = rows[number[c]];
}

template <class T, class Index>
void maxima(const void* table_in, const int64_t* rows, int64_t count, int64_t columns,
            void* best_out, int64_t* places) {
  constexpr int64_t kWidth = kVectorBytes / int64_t(sizeof(T));
  const T* table = static_cast<const T*>(table_in);
  T* best = static_cast<T*>(best_out);
  int64_t c = 0;
  for (; c + 4 * kWidth <= columns; c += 4 * kWidth)
    maxima_of_block<T, Index, 4>(table + c, rows, count, columns, best + c, places + c);
  for (; c + kWidth <= columns; c += kWidth)
    maxima_of_block<T, Index, 1>(table + c, rows, count, columns, best + c, places + c);
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
