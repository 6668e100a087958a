// Owns the inner loops of attention: products of tiles that fit in the L2 cache, and what happens
// to a tile of scores between them.
#include "core/ops/attention/attention_loops.h"
#include "core/tensor/lanes.h"
#include "core/tensor/row_lanes.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// How many accumulators fit in the registers beside the operands: kTall rows of kWide vectors.
// AVX-512 has 32 registers, the others 16.
#if RUSHLIGHT_ISA == 4
constexpr int kWide = 4, kTall = 6;
#elif RUSHLIGHT_ISA == 3
constexpr int kWide = 3, kTall = 4;
#else
constexpr int kWide = 2, kTall = 4;
#endif

// R rows of V vectors of c.
template <class T, int R, int V>
void multiply_block(int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b, int64_t ldb,
                    T* c, int64_t ldc, bool add) {
  Vector<T> sums[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v)
      sums[r][v] = add ? load_vector(c + r * ldc + v * kWidth<T>) : Vector<T>{};
  for (int64_t p = 0; p < k; ++p, a += a_column, b += ldb) {
    Vector<T> right[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) right[v] = load_vector(b + v * kWidth<T>);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector<T> left = broadcast(a[r * a_row]);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sums[r][v] = multiply_add(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) store_vector(c + r * ldc + v * kWidth<T>, sums[r][v]);
}

// All rows of V vectors of c: blocks of R rows, then of fewer.
template <class T, int R, int V>
void multiply_columns(int64_t m, int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b,
                      int64_t ldb, T* c, int64_t ldc, bool add) {
  for (; m >= R; m -= R, a += R * a_row, c += R * ldc)
    multiply_block<T, R, V>(k, a, a_row, a_column, b, ldb, c, ldc, add);
  if constexpr (R > 1)
    if (m > 0) multiply_columns<T, R / 2, V>(m, k, a, a_row, a_column, b, ldb, c, ldc, add);
}

// Columns in groups of V vectors, then of fewer: those are taller.
template <class T, int V>
void multiply_from(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column,
                   const T* b, int64_t ldb, T* c, int64_t ldc, bool add) {
  constexpr int kStep = V * kWidth<T>, kRows = V == 1 ? 2 * kTall : kWide * kTall / V;
  for (; n >= kStep; n -= kStep, b += kStep, c += kStep)
    multiply_columns<T, kRows, V>(m, k, a, a_row, a_column, b, ldb, c, ldc, add);
  if constexpr (V > 1)
    if (n > 0) multiply_from<T, V - 1>(m, n, k, a, a_row, a_column, b, ldb, c, ldc, add);
}

template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column,
              const T* b, int64_t ldb, T* c, int64_t ldc, bool add) {
  multiply_from<T, kWide>(m, n, k, a, a_row, a_column, b, ldb, c, ldc, add);
}

template <class T>
void transpose(const T* from, int64_t ld, int64_t rows, int64_t columns, T scale, T* to,
               int64_t to_ld) {
  constexpr int n = kWidth<T>;
  const Vector<T> factor = broadcast(scale);
  for (int64_t r = 0; r < rows; r += n) {
    for (int64_t c = 0; c < columns; c += n) {
      Vector<T> square[n];
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) square[i] = load_vector(from + (r + i) * ld + c);
      transpose_vectors<T>(square);
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) store_vector(to + (c + i) * to_ld + r, square[i] * factor);
    }
  }
}

template <class T>
constexpr T kInfinity = T(__builtin_inf());

template <class T>
void add_mask(T* scores, int64_t ld, int64_t rows, int64_t width, const T* mask, int64_t mask_row) {
  for (int64_t r = 0; r < rows; ++r, scores += ld, mask += mask_row) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) scores[j] = scores[j] + mask[j];
  }
}

template <class T>
void block(T* scores, int64_t ld, int64_t rows, int64_t width, const uint8_t* mask,
           int64_t mask_row) {
  for (int64_t r = 0; r < rows; ++r, scores += ld, mask += mask_row) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) scores[j] = mask[j] ? scores[j] : -kInfinity<T>;
  }
}

[[gnu::always_inline]] inline int64_t visible(VisibleKeys keys, int64_t row) {
  int64_t n = keys.first + row * keys.step;
  return n < 0 ? 0 : n > keys.width ? keys.width : n;
}

template <class T>
void scale(T* x, T factor, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) x[j] = x[j] * factor;
}

static_assert(kAttentionLanes % kRowLanes == 0);

// As many rows as vectors have lanes, or fewer.
template <class T>
void exponentials_of_rows(T* scores, int64_t ld, int64_t rows, VisibleKeys keys, T* largest,
                          T* total, T* out, int64_t out_ld, int64_t columns) {
  auto add = [](auto a, auto b) { return a + b; };
  RowLanes<T> lanes[kWidth<T>];
  T top[kWidth<T>], old[kWidth<T>], shift[kWidth<T>], factor[kWidth<T>], sum[kWidth<T>];
  for (int64_t r = 0; r < kWidth<T>; ++r) {
    old[r] = r < rows ? largest[r] : -kInfinity<T>;
    fill(lanes[r], -kInfinity<T>, kRowLanes);
    if (r >= rows) continue;
    T* row = scores + r * ld;
    int64_t n = visible(keys, r), whole = padded(n);
    fill(row + n, -kInfinity<T>, whole - n);
    fold_row(whole, lanes[r], [=](int64_t j) { return row[j]; }, Larger());
  }
  store_vector(top, merge_lanes<T>(lanes, Larger()));
#pragma omp simd
  for (int r = 0; r < kWidth<T>; ++r) {
    top[r] = Larger()(top[r], old[r]);
    // Nothing seen so far has another score than -inf: any number keeps their exponentials 0.
    shift[r] = top[r] == -kInfinity<T> ? T(0) : top[r];
    factor[r] = exp_nonpositive(old[r] - shift[r]);
  }
  for (int64_t r = 0; r < rows; ++r) {
    T* row = scores + r * ld;
    const T below = shift[r];
    int64_t whole = padded(visible(keys, r));
    fill(lanes[r], T(0), kRowLanes);
    fold_row(
        whole, lanes[r], [=](int64_t j) { return row[j] = exp_nonpositive(row[j] - below); }, add);
    fill(row + whole, T(0), keys.width - whole);
  }
  store_vector(sum, merge_lanes<T>(lanes, add));
  for (int64_t r = 0; r < rows; ++r) {
    total[r] = multiply_add(total[r], factor[r], sum[r]);
    largest[r] = top[r];
    if (factor[r] != T(1)) scale(out + r * out_ld, factor[r], columns);
  }
}

template <class T>
void exponentials(T* scores, int64_t ld, int64_t rows, VisibleKeys keys, T* largest, T* total,
                  T* out, int64_t out_ld, int64_t columns) {
  for (int64_t r = 0; r < rows; r += kWidth<T>, keys.first += kWidth<T> * keys.step)
    exponentials_of_rows(scores + r * ld, ld, rows - r < kWidth<T> ? rows - r : kWidth<T>, keys,
                         largest + r, total + r, out + r * out_ld, out_ld, columns);
}

template <class T>
void score_grads(T* scores, T* grads, int64_t ld, int64_t rows, VisibleKeys keys,
                 const T* logsumexp, const T* dots) {
  for (int64_t r = 0; r < rows; ++r, scores += ld, grads += ld) {
    int64_t n = visible(keys, r);
    // A row that sees nothing has probabilities 0.
    const T shift = logsumexp[r] == -kInfinity<T> ? kInfinity<T> : logsumexp[r], dot = dots[r];
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      T probability = exp_nonpositive(scores[j] - shift);
      scores[j] = probability;
      grads[j] = probability * (grads[j] - dot);
    }
    fill(scores + n, T(0), keys.width - n);
    fill(grads + n, T(0), keys.width - n);
  }
}

template <class T>
T dot(const T* x, const T* y, int64_t n) {
  return sum<T>(n, [=](int64_t i) { return x[i] * y[i]; });
}

template <class T>
void add(T* x, const T* y, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) x[j] = x[j] + y[j];
}

template <class T>
constexpr AttentionLoopsOf<T> make_loops() {
  return {&multiply<T>,    &transpose<T>, &add_mask<T>, &block<T>, &exponentials<T>,
          &score_grads<T>, &dot<T>,       &scale<T>,    &add<T>};
}

}  // namespace

extern const AttentionLoops attention_loops;
constexpr AttentionLoops attention_loops = {make_loops<float>(), make_loops<double>()};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
