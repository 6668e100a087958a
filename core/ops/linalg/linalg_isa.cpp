// Owns the factorizations of matrices of up to 16 x 16. They are copied to where each row, or
// column, is a whole number of vectors, so that no loop has a rest; but those of a few numbers are
// done where they are.
#include "core/ops/linalg/linalg_loops.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int kMost = int(kSmallMatrix);
constexpr int64_t kFew = 4;   // rows and columns for which a copy would take longer than the rest
constexpr int kUnrolled = 8;  // the same where all loops are unrolled

template <class T>
constexpr bool kIsReal = detail::kSame<T, float> || detail::kSame<T, double>;
template <class T>
constexpr int lanes_of() {
  if constexpr (kIsReal<T>) return kWidth<T>;
  else return 1;
}

template <class T>
T conjugate(T x) {
  if constexpr (kIsReal<T>) return x;
  else return conj(x);
}
template <class T>
auto real_part(T x) {
  if constexpr (kIsReal<T>) return x;
  else return x.real();
}
// What LAPACK compares pivots by.
template <class T>
auto magnitude(T x) {
  if constexpr (kIsReal<T>) return abs(x);
  else return abs(x.real()) + abs(x.imag());
}

template <class T>
void exchange(T& a, T& b) {
  T kept = a;
  a = b;
  b = kept;
}

// The lines of a matrix, which are its rows or its columns. What lies after the end of a line is
// finite and stays unused.
template <class T>
struct Lines {
  alignas(64) T at[kMost][kMost];

  void load(const T* from, int64_t lines, int64_t line_stride, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < lines; ++i) {
      for (int64_t k = 0; k < n; ++k) at[i][k] = from[i * line_stride + k * stride];
      for (int64_t k = n; k < kMost; ++k) at[i][k] = T(0);
    }
  }
  void store(T* to, int64_t lines, int64_t line_stride, int64_t n, int64_t stride) const {
    for (int64_t i = 0; i < lines; ++i)
      for (int64_t k = 0; k < n; ++k) to[i * line_stride + k * stride] = at[i][k];
  }
};

// line[i] = value(i) for the elements [begin, end) of a line; others are computed, but not kept.
template <class T, class Value>
[[gnu::always_inline]] inline void update(T* line, int64_t begin, int64_t end, const Value& value) {
  constexpr int lanes = lanes_of<T>();
  for (int64_t i = begin / lanes * lanes; i < end; i += lanes) {
    int first = int(begin - i), last = int(end - i);
#pragma omp simd
    for (int k = 0; k < lanes; ++k) {
      T updated = value(i + k);
      line[i + k] = (k >= first) & (k < last) ? updated : line[i + k];
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void subtract(T* line, const T* other, T factor, int64_t begin,
                                            int64_t end) {
  update(line, begin, end,
         [=](int64_t i) __attribute__((always_inline)) { return line[i] - other[i] * factor; });
}
template <class T, class D>
[[gnu::always_inline]] inline void divide(T* line, D divisor, int64_t begin, int64_t end) {
  update(line, begin, end,
         [=](int64_t i) __attribute__((always_inline)) { return line[i] / divisor; });
}

// Where the largest of a column stands, from row j on.
template <class T>
[[gnu::always_inline]] inline int64_t pivot_of(const T* column, int64_t j, int64_t m) {
  int64_t pivot = j;
  for (int64_t i = j + 1; i < m; ++i)
    if (magnitude(column[i]) > magnitude(column[pivot])) pivot = i;
  return pivot;
}

// The same as lu.
template <class T>
int lu_of_few(int64_t m, int64_t n, T* a, int* pivots) {
  int info = 0;
  for (int64_t j = 0; j < m && j < n; ++j) {
    T* column = a + j * m;
    int64_t pivot = pivot_of(column, j, m);
    pivots[j] = int(pivot) + 1;
    if (column[pivot] == T(0)) {
      if (!info) info = int(j) + 1;
      continue;
    }
    if (pivot != j)
      for (int64_t c = 0; c < n; ++c) exchange(a[c * m + j], a[c * m + pivot]);
    for (int64_t i = j + 1; i < m; ++i) column[i] = column[i] / column[j];
    for (int64_t c = j + 1; c < n; ++c)
      for (int64_t i = j + 1; i < m; ++i) a[c * m + i] -= column[i] * a[c * m + j];
  }
  return info;
}

// Golub and Van Loan, algorithm 3.4.1: outer products with row exchanges.
template <class T>
int lu(int64_t m, int64_t n, void* matrix, int* pivots) {
  T* a = static_cast<T*>(matrix);
  if (m <= kFew && n <= kFew) return lu_of_few(m, n, a, pivots);
  Lines<T> columns;
  columns.load(a, n, m, m, 1);
  int info = 0;
  for (int64_t j = 0; j < m && j < n; ++j) {
    T* column = columns.at[j];
    int64_t pivot = pivot_of(column, j, m);
    pivots[j] = int(pivot) + 1;
    if (column[pivot] == T(0)) {
      if (!info) info = int(j) + 1;
      continue;
    }
    if (pivot != j)
      for (int64_t c = 0; c < n; ++c) exchange(columns.at[c][j], columns.at[c][pivot]);
    divide(column, column[j], j + 1, m);
    for (int64_t c = j + 1; c < n; ++c) subtract(columns.at[c], column, columns.at[c][j], j + 1, m);
  }
  columns.store(a, n, m, m, 1);
  return info;
}

// Golub and Van Loan, algorithm 4.2.1, by outer products.
template <class T>
int cholesky(int64_t n, void* matrix, int64_t row, int64_t column) {
  T* a = static_cast<T*>(matrix);
  Lines<T> columns;
  columns.load(a, n, column, n, row);
  int info = 0;
  for (int64_t j = 0; j < n && !info; ++j) {
    T* factor = columns.at[j];
    auto d = real_part(factor[j]);
    if (!(d > 0)) {
      info = int(j) + 1;
      break;
    }
    d = sqrt(d);
    factor[j] = d;
    divide(factor, d, j + 1, n);
    for (int64_t c = j + 1; c < n; ++c) subtract(columns.at[c], factor, conjugate(factor[c]), c, n);
  }
  columns.store(a, n, column, n, row);
  return info;
}

// The same as substitute, for up to n numbers, with all loops but that over columns unrolled.
template <int n, class T>
void substitute_unrolled(int64_t size, const SmallTriangle& triangle, T* b, int64_t column,
                         int64_t columns) {
  if (size < n) {
    if constexpr (n > 1) substitute_unrolled<n - 1>(size, triangle, b, column, columns);
    return;
  }
  const T* a = static_cast<const T*>(triangle.data);
  auto place = [=](int i) { return triangle.upper ? n - 1 - i : i; };  // of what is i-th solved for
  T factors[n][n];
  for (int i = 0; i < n; ++i)
    for (int k = i; k < n; ++k) {
      const T x = a[place(k) * triangle.row + place(i) * triangle.column];
      factors[i][k] = triangle.conjugated ? conjugate(x) : x;
    }
  for (int64_t c = 0; c < columns; ++c, b += column) {
    T x[n];
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) x[i] = b[place(i)];
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
      if (!triangle.unitriangular) x[i] = x[i] / factors[i][i];
#pragma GCC unroll 8
      for (int k = i + 1; k < n; ++k) x[k] -= factors[i][k] * x[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) b[place(i)] = x[i];
  }
}

template <class T>
void substitute(int64_t n, const SmallTriangle& triangle, void* b, int64_t column,
                int64_t columns) {
  T* side = static_cast<T*>(b);
  if (n <= kUnrolled && columns <= kUnrolled)
    return substitute_unrolled<kUnrolled>(n, triangle, side, column, columns);
  Lines<T> of_a, rows;
  of_a.load(static_cast<const T*>(triangle.data), n, triangle.column, n, triangle.row);
  if (triangle.conjugated)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) of_a.at[j][i] = conjugate(of_a.at[j][i]);
  for (; columns > 0; columns -= kMost, side += kMost * column) {
    int64_t width = columns < kMost ? columns : kMost;
    rows.load(side, n, 1, width, column);
    for (int64_t step = 0; step < n; ++step) {
      int64_t i = triangle.upper ? n - 1 - step : step;
      T* row = rows.at[i];
      const T* factors = of_a.at[i];
      if (!triangle.unitriangular) divide(row, factors[i], 0, width);
      int64_t end = triangle.upper ? i : n;
      for (int64_t k = triangle.upper ? 0 : i + 1; k < end; ++k)
        subtract(rows.at[k], row, factors[k], 0, width);
    }
    rows.store(side, n, 1, width, column);
  }
}

}  // namespace

extern const SmallMatrixLoops small_matrix_loops;
#if RUSHLIGHT_ISA == 0
constexpr SmallMatrixLoops small_matrix_loops = {
    {&lu<float>, &lu<double>, &lu<Complex<float>>, &lu<Complex<double>>},
    {&cholesky<float>, &cholesky<double>, &cholesky<Complex<float>>, &cholesky<Complex<double>>},
    {&substitute<float>, &substitute<double>, &substitute<Complex<float>>,
     &substitute<Complex<double>>}};
#else
constexpr SmallMatrixLoops small_matrix_loops = {{&lu<float>, &lu<double>},
                                                 {&cholesky<float>, &cholesky<double>},
                                                 {&substitute<float>, &substitute<double>}};
#endif

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
