// Owns the loops of roi pooling. The rows of a bin are summed first, for all columns of the roi at
// once, and then the columns: that takes vectors, and fewer products than to visit each sample.
#include "core/ops/vision/roi_loops.h"

#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <class T>
const T* row_of(const void* plane, int64_t width, int32_t place, const RoiBins& columns) {
  return static_cast<const T*>(plane) + place * width + columns.low;
}

// row = the weighted sum of `count` rows of a plane, two at a time.
template <class T>
void sum_rows(const int32_t* places, const T* weights, int64_t count, const RoiBins& columns,
              const void* plane, int64_t width, T* row) {
  int64_t n = columns.high - columns.low, k = 0;
  if (count >= 3) {
    const T *a = row_of<T>(plane, width, places[0], columns),
            *b = row_of<T>(plane, width, places[1], columns),
            *c = row_of<T>(plane, width, places[2], columns);
    T u = weights[0], v = weights[1], w = weights[2];
#pragma omp simd
    for (int64_t x = 0; x < n; ++x) row[x] = multiply_add(c[x], w, multiply_add(b[x], v, a[x] * u));
    k = 3;
  } else {
    const T* a = row_of<T>(plane, width, places[0], columns);
    T u = weights[0];
#pragma omp simd
    for (int64_t x = 0; x < n; ++x) row[x] = a[x] * u;
    k = 1;
  }
  for (; k < count; ++k) {
    const T* a = row_of<T>(plane, width, places[k], columns);
    T u = weights[k];
#pragma omp simd
    for (int64_t x = 0; x < n; ++x) row[x] = multiply_add(a[x], u, row[x]);
  }
}

template <class T>
void sum(const RoiBins& rows, const RoiBins& columns, const void* plane, int64_t width,
         void* row_in, void* out_in) {
  T *row = static_cast<T*>(row_in), *out = static_cast<T*>(out_in);
  const T *row_weights = static_cast<const T*>(rows.weights),
          *weights = static_cast<const T*>(columns.weights);
  for (int64_t i = 0; i < rows.bins; ++i, out += columns.bins) {
    int64_t first = rows.start[i], count = rows.start[i + 1] - first;
    if (count == 0) {
      for (int64_t j = 0; j < columns.bins; ++j) out[j] = 0;
      continue;
    }
    sum_rows(rows.places + first, row_weights + first, count, columns, plane, width, row);
    const T* from = row - columns.low;
    for (int64_t j = 0; j < columns.bins; ++j) {
      T total = 0;
      for (int64_t k = columns.start[j]; k < columns.start[j + 1]; ++k)
        total = multiply_add(from[columns.places[k]], weights[k], total);
      out[j] = total;
    }
  }
}

template <class T>
void spread(const RoiBins& rows, const RoiBins& columns, const void* grad_in, int64_t width,
            void* row_in, void* plane) {
  T* row = static_cast<T*>(row_in);
  const T *row_weights = static_cast<const T*>(rows.weights),
          *weights = static_cast<const T*>(columns.weights), *grad = static_cast<const T*>(grad_in);
  int64_t n = columns.high - columns.low;
  for (int64_t i = 0; i < rows.bins; ++i, grad += columns.bins) {
    if (rows.start[i] == rows.start[i + 1]) continue;
    for (int64_t x = 0; x < n; ++x) row[x] = 0;
    T* to = row - columns.low;
    for (int64_t j = 0; j < columns.bins; ++j)
      for (int64_t k = columns.start[j]; k < columns.start[j + 1]; ++k)
        to[columns.places[k]] = multiply_add(grad[j], weights[k], to[columns.places[k]]);
    for (int64_t k = rows.start[i]; k < rows.start[i + 1]; ++k) {
      T* line = static_cast<T*>(plane) + rows.places[k] * width + columns.low;
      T weight = row_weights[k];
#pragma omp simd
      for (int64_t x = 0; x < n; ++x) line[x] = multiply_add(row[x], weight, line[x]);
    }
  }
}

}  // namespace

extern const RoiLoops roi_loops;
constexpr RoiLoops roi_loops = {{&sum<float>, &sum<double>}, {&spread<float>, &spread<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
