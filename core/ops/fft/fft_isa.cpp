// Owns the FFT kernels: transforms of columns that run side by side in the lanes of vectors, so
// that butterflies need no shuffles. Longer ones are split into columns and rows.
//
// J. W. Cooley, J. W. Tukey: An algorithm for the machine calculation of complex Fourier series
// (1965); T. G. Stockham's order of the passes (in W. T. Cochran et al.: What is the fast Fourier
// transform?, 1967), which needs no bit reversal; D. H. Bailey: FFTs in external or hierarchical
// memory (1990). All transforms run forward: an inverse one is the same with row n - k for row k.
#include "core/ops/fft/fft_loops.h"
#include "core/tensor/vectors.h"

#include "core/ops/fft/fft_radix.h"  // after vectors.h

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Row i of a forward transform is this row of an inverse one, and the other way round.
[[gnu::always_inline]] inline int64_t row_of(int64_t i, int64_t n, bool inverse) {
  return inverse && i ? n - i : i;
}

// Pairs (real, imaginary) in memory.
template <class T>
[[gnu::always_inline]] inline Lanes<T> load_pairs(const T* from) {
  Vector<T> a = load_vector(from), b = load_vector(from + kWidth<T>);
  return {every_second<T, 0>(a, b), every_second<T, 1>(a, b)};
}
template <class T>
[[gnu::always_inline]] inline void store_pairs(T* to, Lanes<T> x) {
  store_vector(to, interleave<T, 0>(x.re, x.im));
  store_vector(to + kWidth<T>, interleave<T, 1>(x.re, x.im));
}
template <class T>
[[gnu::always_inline]] inline Lanes<T> backwards(Lanes<T> a) {
  return {reversed<T>(a.re), reversed<T>(a.im)};
}

// ---- where columns come from and go to ----------------------------------------------------------

// Rows of real lanes followed by imaginary ones.
template <class T>
struct Blocks {
  T* data;
  [[gnu::always_inline]] Lanes<T> load(int64_t i) const {
    const T* row = data + i * 2 * kWidth<T>;
    return {load_vector(row), load_vector(row + kWidth<T>)};
  }
  [[gnu::always_inline]] void store(int64_t i, Lanes<T> x) const {
    T* row = data + i * 2 * kWidth<T>;
    store_vector(row, x.re);
    store_vector(row + kWidth<T>, x.im);
  }
};

// Rows of pairs in memory.
template <class T>
struct PairsFrom {
  const T* data;
  int64_t stride;
  [[gnu::always_inline]] Lanes<T> load(int64_t i) const {
    return load_pairs(data + i * 2 * stride);
  }
};
template <class T>
struct PairsTo {
  T* data;
  int64_t stride, n;
  bool inverse;
  T scale;
  [[gnu::always_inline]] void store(int64_t i, Lanes<T> x) const {
    store_pairs(data + row_of(i, n, inverse) * 2 * stride, x * scale);
  }
};

// Pairs of rows of real numbers in memory, as real and imaginary parts.
template <class T>
struct RealFrom {
  const T* data;
  int64_t stride;
  [[gnu::always_inline]] Lanes<T> load(int64_t i) const {
    const T* row = data + i * 2 * stride;
    return {load_vector(row), load_vector(row + stride)};
  }
};
template <class T>
struct InverseToReal {
  T* data;
  int64_t stride, n;
  T scale;
  [[gnu::always_inline]] void store(int64_t i, Lanes<T> x) const {
    T* row = data + row_of(i, n, true) * 2 * stride;
    store_vector(row, x.re * scale);
    store_vector(row + stride, x.im * scale);
  }
};

// The middle of a split transform: rows of n2 real numbers followed by n2 imaginary ones. Rotates.
template <class T>
struct MiddleTo {
  const FftSplit<T>* plan;
  T* data;
  int64_t column;
  [[gnu::always_inline]] Lanes<T> rotation(int64_t k) const {
    int64_t n2 = plan->second.n;
    if (plan->rotations) {
      const T* row = plan->rotations + k * 2 * n2 + column;
      return {load_vector(row), load_vector(row + n2)};
    }
    // The lanes may begin within a block and end in the next: the tables have two blocks.
    int64_t turns = k * (column / kFftBlock);
    const double* a = plan->coarse + turns / kFftFine * 2;
    const double* b = plan->fine + turns % kFftFine * 2;
    const T* lane = plan->lane + k * 4 * kFftBlock + column % kFftBlock;
    return all_lanes(T(a[0] * b[0] - a[1] * b[1]), T(a[0] * b[1] + a[1] * b[0])) *
           Lanes<T>{load_vector(lane), load_vector(lane + 2 * kFftBlock)};
  }
  [[gnu::always_inline]] void store(int64_t i, Lanes<T> x) const {
    int64_t k = row_of(i, plan->first.n, plan->inverse), n2 = plan->second.n;
    T* row = data + k * 2 * n2 + column;
    Lanes<T> y = x * rotation(k);
    store_vector(row, y.re);
    store_vector(row + n2, y.im);
  }
};

// ---- passes -------------------------------------------------------------------------------------

// One pass of radix R over m * R * s rows: butterfly (p, q) takes rows q + s (p + m j) and gives
// rows q + s (R p + j), turned by w^(p j).
template <int R, class T, class From, class To>
[[gnu::noinline]] void pass(From from, To to, int64_t m, int64_t s, const T* w) {
  Lanes<T> x[R];
  for (int64_t p = 0; p < m; ++p, w += 2 * (R - 1)) {
    for (int64_t q = 0; q < s; ++q) {
#pragma GCC unroll 16
      for (int j = 0; j < R; ++j) x[j] = from.load(q + s * (p + m * j));
      Dft<R>::run(x);
      if (m > 1) {
#pragma GCC unroll 16
        for (int j = 1; j < R; ++j) x[j] = x[j] * all_lanes(w[2 * j - 2], w[2 * j - 1]);
      }
#pragma GCC unroll 16
      for (int j = 0; j < R; ++j) to.store(q + s * (R * p + j), x[j]);
    }
  }
}

// The same for any odd r up to kMaxRadix.
template <class T, class From, class To>
[[gnu::noinline]] void odd_pass(int64_t r, From from, To to, int64_t m, int64_t s, const T* w,
                                const T* turns) {
  Lanes<T> x[kMaxRadix];
  for (int64_t p = 0; p < m; ++p, w += 2 * (r - 1)) {
    for (int64_t q = 0; q < s; ++q) {
      for (int64_t j = 0; j < r; ++j) x[j] = from.load(q + s * (p + m * j));
      odd_dft<kMaxRadix>(int(r), x, turns);
      to.store(q + s * r * p, x[0]);
      for (int64_t j = 1; j < r; ++j)
        to.store(q + s * (r * p + j), x[j] * all_lanes(w[2 * j - 2], w[2 * j - 1]));
    }
  }
}

template <class T, class From, class To>
void any_pass(const FftColumns<T>& plan, int i, int64_t s, From from, To to) {
  int64_t r = plan.radix[i], m = plan.n / (r * s);
  const T* w = plan.twiddles[i];
  switch (r) {
    case 2: return pass<2, T>(from, to, m, s, w);
    case 3: return pass<3, T>(from, to, m, s, w);
    case 4: return pass<4, T>(from, to, m, s, w);
    case 5: return pass<5, T>(from, to, m, s, w);
    case 7: return pass<7, T>(from, to, m, s, w);
    case 8: return pass<8, T>(from, to, m, s, w);
    default: return odd_pass<T>(r, from, to, m, s, w, plan.turns[i]);
  }
}

// All passes. Scratch has room for the columns twice; `from` may be its first half, `to` what
// result_in() says.
template <class T, class From, class To>
void transform(const FftColumns<T>& plan, From from, To to, T* scratch) {
  Blocks<T> here{scratch}, there{scratch + plan.n * 2 * kWidth<T>};
  if (plan.passes == 1) return any_pass<T>(plan, 0, 1, from, to);
  int64_t s = plan.radix[0];
  any_pass<T>(plan, 0, 1, from, there);
  for (int i = 1; i + 1 < plan.passes; s *= plan.radix[i++]) {
    any_pass<T>(plan, i, s, there, here);
    Blocks<T> swap = here;
    here = there;
    there = swap;
  }
  any_pass<T>(plan, plan.passes - 1, s, there, to);
}

// The half of scratch that the last pass does not read.
template <class T>
T* result_in(const FftColumns<T>& plan, T* scratch) {
  return scratch + plan.passes % 2 * plan.n * 2 * kWidth<T>;
}

// ---- the kernels --------------------------------------------------------------------------------

constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T>
int64_t scratch_pairs(int64_t n) {
  return (2 * n + 1) * kWidth<T>;
}

template <class T>
void columns(const FftColumns<T>& plan, bool inverse, T scale, const T* in, int64_t in_stride,
             T* out, int64_t out_stride, T* scratch) {
  transform(plan, PairsFrom<T>{in, in_stride}, PairsTo<T>{out, out_stride, plan.n, inverse, scale},
            scratch);
}

// Rows of at least a vector of elements go to blocks and back in squares that are transposed; the
// last square of a row may take elements again. `width` counts numbers, strides count pairs.
template <class T>
[[gnu::always_inline]] inline void load_rows(const T* in, int64_t in_stride, int64_t width,
                                             int64_t count, T* to) {
  constexpr int64_t lanes = kWidth<T>;
  Vector<T> a[lanes];
  for (int64_t t = 0; t < width; t += lanes) {
    int64_t at = smaller(t, width - lanes);
#pragma GCC unroll 16
    for (int64_t l = 0; l < lanes; ++l)
      a[l] = load_vector(in + (l < count ? l : 0) * 2 * in_stride + at);
    transpose_vectors<T>(a);
#pragma GCC unroll 16
    for (int64_t l = 0; l < lanes; ++l) store_vector(to + (at + l) * lanes, a[l]);
  }
}
// number(i) is number i of all rows.
template <class T, class Number>
[[gnu::always_inline]] inline void store_rows(Number number, int64_t width, T* out,
                                              int64_t out_stride, int64_t count) {
  constexpr int64_t lanes = kWidth<T>;
  Vector<T> a[lanes];
  for (int64_t t = 0; t < width; t += lanes) {
    int64_t at = smaller(t, width - lanes);
#pragma GCC unroll 16
    for (int64_t l = 0; l < lanes; ++l) a[l] = number(at + l);
    transpose_vectors<T>(a);
#pragma GCC unroll 16
    for (int64_t l = 0; l < lanes; ++l)
      if (l < count) store_vector(out + l * 2 * out_stride + at, a[l]);
  }
}

// Number i of rows in blocks, of forward or inverse transforms of length n.
template <class T>
[[gnu::always_inline]] inline Vector<T> number_of(const T* blocks, int64_t i, int64_t n,
                                                  bool inverse, T scale) {
  return load_vector(blocks + (row_of(i / 2, n, inverse) * 2 + i % 2) * kWidth<T>) * scale;
}

template <class T>
void rows(const FftColumns<T>& plan, bool inverse, T scale, const T* in, int64_t in_stride, T* out,
          int64_t out_stride, int64_t count, T* scratch) {
  int64_t n = plan.n;
  T* result = result_in(plan, scratch);
  load_rows(in, in_stride, 2 * n, count, scratch);
  transform(plan, Blocks<T>{scratch}, Blocks<T>{result}, scratch);
  auto number = [=](int64_t i) __attribute__((always_inline)) {
    return number_of(result, i, n, inverse, scale);
  };
  store_rows(number, 2 * n, out, out_stride, count);
}

// n is at least a vector: the last block may take columns again.
template <class T>
void split_first(const FftSplit<T>& plan, const T* in, T* middle, int64_t begin, int64_t end,
                 T* scratch) {
  int64_t n2 = plan.second.n;
  for (int64_t b = begin; b < end; ++b) {
    int64_t column = smaller(b * kWidth<T>, n2 - kWidth<T>);
    transform(plan.first, PairsFrom<T>{in + column * 2, n2}, MiddleTo<T>{&plan, middle, column},
              scratch);
  }
}

template <class T>
void split_second(const FftSplit<T>& plan, T scale, const T* middle, T* out, int64_t begin,
                  int64_t end, T* scratch) {
  constexpr int64_t lanes = kWidth<T>;
  int64_t n1 = plan.first.n, n2 = plan.second.n;
  Vector<T> a[lanes];
  for (int64_t b = begin; b < end; ++b) {
    int64_t row = n1 < lanes ? 0 : smaller(b * lanes, n1 - lanes);
    int64_t count = smaller(n1, lanes);
    for (int64_t t = 0; t < n2; t += lanes) {
      int64_t at = smaller(t, n2 - lanes);
      for (int64_t part = 0; part < 2; ++part) {
        const T* from = middle + row * 2 * n2 + part * n2 + at;
#pragma GCC unroll 16
        for (int64_t l = 0; l < lanes; ++l) a[l] = load_vector(from + (l < count ? l : 0) * 2 * n2);
        transpose_vectors<T>(a);
#pragma GCC unroll 16
        for (int64_t l = 0; l < lanes; ++l)
          store_vector(scratch + ((at + l) * 2 + part) * lanes, a[l]);
      }
    }
    if (count == lanes) {
      transform(plan.second, Blocks<T>{scratch},
                PairsTo<T>{out + row * 2, n1, n2, plan.inverse, scale}, scratch);
      continue;
    }
    T* few = result_in(plan.second, scratch);
    transform(plan.second, Blocks<T>{scratch}, PairsTo<T>{few, lanes, n2, plan.inverse, scale},
              scratch);
    for (int64_t i = 0; i < n2; ++i)
      for (int64_t l = 0; l < 2 * count; ++l) out[i * 2 * n1 + l] = few[i * 2 * lanes + l];
  }
}

// ---- elementwise steps --------------------------------------------------------------------------

template <FftMultiply form, class T>
[[gnu::always_inline]] inline void multiply_as(const T* a, const T* b, T factor, T* out,
                                               int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    T re = a[2 * i], im = form == FftMultiply::conjugate_input ? -a[2 * i + 1] : a[2 * i + 1];
    T x = (re * b[2 * i] - im * b[2 * i + 1]) * factor;
    T y = (re * b[2 * i + 1] + im * b[2 * i]) * factor;
    out[2 * i] = x;
    out[2 * i + 1] = form == FftMultiply::conjugate_result ? -y : y;
  }
}
template <class T>
void multiply(FftMultiply form, const T* a, const T* b, T factor, T* out, int64_t n) {
  switch (form) {
    case FftMultiply::plain: return multiply_as<FftMultiply::plain>(a, b, factor, out, n);
    case FftMultiply::conjugate_result:
      return multiply_as<FftMultiply::conjugate_result>(a, b, factor, out, n);
    case FftMultiply::conjugate_input:
      return multiply_as<FftMultiply::conjugate_input>(a, b, factor, out, n);
  }
}

// E_k = z_k + conj z_(m-k), O_k = -i (z_k - conj z_(m-k)), x_k = (E_k + w^k O_k) / 2 and
// x_(m-k) = conj(E_k - w^k O_k) / 2; the other way with w^-k, and z_k = E_k + i O_k.
// `a` is element k, `b` element m - k.
template <bool kBack, class Number>
[[gnu::always_inline]] inline void unmix(Number& a, Number& b, Number w) {
  Number even = a + conj(b), odd = a - conj(b);
  if constexpr (kBack) odd = odd * conj(w);
  else odd = odd * w;
  // -i times forth, i times back.
  Number turned = kBack ? Number{-odd.im, odd.re} : Number{odd.im, -odd.re};
  a = even + turned;
  b = conj(even - turned);
}

// One number, with the operators of Lanes.
template <class T>
struct One {
  T re, im;
};
template <class T>
[[gnu::always_inline]] inline One<T> operator+(One<T> a, One<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
[[gnu::always_inline]] inline One<T> operator-(One<T> a, One<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
[[gnu::always_inline]] inline One<T> operator*(One<T> a, One<T> b) {
  return {multiply_add(-a.im, b.im, a.re * b.re), multiply_add(a.im, b.re, a.re * b.im)};
}
template <class T>
[[gnu::always_inline]] inline One<T> conj(One<T> a) {
  return {a.re, -a.im};
}

// Elements k and m - k for k in [begin, end), 0 < k <= m / 2. Where there are enough, several at
// once; the last of them may be taken again.
template <bool kBack, class T>
void unmix_range(const T* in, const T* w, T scale, T* out, int64_t m, int64_t begin, int64_t end) {
  constexpr int64_t lanes = kWidth<T>;
  if (end - begin >= lanes) {
    for (int64_t i = begin; i < end; i += lanes) {
      int64_t k = smaller(i, end - lanes), other = m - k - lanes + 1;
      Lanes<T> a = load_pairs(in + 2 * k), b = backwards(load_pairs(in + 2 * other));
      unmix<kBack>(a, b, load_pairs(w + 2 * k));
      store_pairs(out + 2 * k, a * scale);
      store_pairs(out + 2 * other, backwards(b * scale));
    }
    return;
  }
  for (int64_t k = begin; k < end; ++k) {
    One<T> a = {in[2 * k], in[2 * k + 1]}, b = {in[2 * (m - k)], in[2 * (m - k) + 1]};
    unmix<kBack>(a, b, One<T>{w[2 * k], w[2 * k + 1]});
    out[2 * k] = a.re * scale;
    out[2 * k + 1] = a.im * scale;
    out[2 * (m - k)] = b.re * scale;
    out[2 * (m - k) + 1] = b.im * scale;
  }
}

template <class T>
void pairs_to_half(const T* z, const T* w, T scale, T* out, int64_t m, int64_t begin, int64_t end) {
  if (begin == 0) {
    T re = z[0], im = z[1];
    out[0] = (re + im) * scale;
    out[2 * m] = (re - im) * scale;
    out[1] = out[2 * m + 1] = 0;
    begin = 1;
  }
  unmix_range<false>(z, w, scale / 2, out, m, begin, end);
}

template <class T>
void half_to_pairs(const T* x, const T* w, T* z, int64_t m, int64_t begin, int64_t end) {
  if (begin == 0) {
    T first = x[0], last = x[2 * m];
    z[0] = first + last;
    z[1] = first - last;
    begin = 1;
  }
  unmix_range<true>(x, w, T(1), z, m, begin, end);
}

// The same for columns side by side, and for rows.
template <class T, class Put>
[[gnu::always_inline]] inline void blocks_to_half(Blocks<T> z, const T* w, T scale, int64_t m,
                                                  Put put) {
  Lanes<T> first = z.load(0);
  put(0, {(first.re + first.im) * scale, Vector<T>{}});
  put(m, {(first.re - first.im) * scale, Vector<T>{}});
  for (int64_t k = 1; 2 * k <= m; ++k) {
    Lanes<T> a = z.load(k), b = z.load(m - k);
    unmix<false>(a, b, all_lanes(w[2 * k], w[2 * k + 1]));
    put(k, a * (scale / 2));
    put(m - k, b * (scale / 2));
  }
}
template <class T, class From>
[[gnu::always_inline]] inline void half_to_blocks(From x, const T* w, int64_t m, Blocks<T> z) {
  Vector<T> first = x.load(0).re, last = x.load(m).re;
  z.store(0, {first + last, first - last});
  for (int64_t k = 1; 2 * k <= m; ++k) {
    Lanes<T> a = x.load(k), b = x.load(m - k);
    unmix<true>(a, b, all_lanes(w[2 * k], w[2 * k + 1]));
    z.store(k, a);
    z.store(m - k, b);
  }
}

template <class T>
void columns_to_half(const FftColumns<T>& plan, const T* w, T scale, const T* in, int64_t in_stride,
                     T* out, int64_t out_stride, T* scratch) {
  Blocks<T> z{result_in(plan, scratch)};
  transform(plan, RealFrom<T>{in, in_stride}, z, scratch);
  auto put = [=](int64_t row, Lanes<T> x)
                 __attribute__((always_inline)) { store_pairs(out + row * 2 * out_stride, x); };
  blocks_to_half(z, w, scale, plan.n, put);
}

template <class T>
void rows_to_half(const FftColumns<T>& plan, const T* w, T scale, const T* in, int64_t in_stride,
                  T* out, int64_t out_stride, int64_t count, T* scratch) {
  int64_t m = plan.n;
  T* result = result_in(plan, scratch);
  Blocks<T> z{result};
  load_rows(in, in_stride, 2 * m, count, scratch);
  transform(plan, Blocks<T>{scratch}, z, scratch);
  auto put = [=](int64_t k, Lanes<T> x) __attribute__((always_inline)) { z.store(k, x); };
  blocks_to_half(z, w, scale, m, put);
  auto number = [=](int64_t i)
                    __attribute__((always_inline)) { return load_vector(result + i * kWidth<T>); };
  store_rows(number, 2 * m + 2, out, out_stride, count);
}

template <class T>
void half_to_columns(const FftColumns<T>& plan, const T* w, T scale, const T* in, int64_t in_stride,
                     T* out, int64_t out_stride, T* scratch) {
  Blocks<T> z{scratch};
  half_to_blocks(PairsFrom<T>{in, in_stride}, w, plan.n, z);
  transform(plan, z, InverseToReal<T>{out, out_stride, plan.n, scale}, scratch);
}

template <class T>
void half_to_rows(const FftColumns<T>& plan, const T* w, T scale, const T* in, int64_t in_stride,
                  T* out, int64_t out_stride, int64_t count, T* scratch) {
  int64_t m = plan.n;
  T* result = result_in(plan, scratch);
  Blocks<T> z{scratch};
  load_rows(in, in_stride, 2 * m + 2, count, scratch);
  half_to_blocks(z, w, m, z);
  transform(plan, z, Blocks<T>{result}, scratch);
  auto number = [=](int64_t i)
                    __attribute__((always_inline)) { return number_of(result, i, m, true, scale); };
  store_rows(number, 2 * m, out, out_stride, count);
}

// Adds the conjugates that complete the first half of a transform of n real numbers; of the inverse
// one, the first half is conjugate itself.
template <class T>
void complete(T* row, bool inverse, int64_t n) {
  constexpr int64_t lanes = kWidth<T>;
  T sign = inverse ? -1 : 1;
  int64_t k = 1;
  for (; 2 * (k + lanes) <= n + 1; k += lanes) {
    Lanes<T> x = load_pairs(row + 2 * k);
    x.im = x.im * sign;
    store_pairs(row + 2 * k, x);
    store_pairs(row + 2 * (n - k - lanes + 1), backwards(conj(x)));
  }
  for (; 2 * k < n; ++k) {
    T re = row[2 * k], im = row[2 * k + 1] * sign;
    row[2 * k + 1] = im;
    row[2 * (n - k)] = re;
    row[2 * (n - k) + 1] = -im;
  }
}

template <class T>
constexpr FftLoopsOf<T> loops_of() {
  return {.lanes = kWidth<T>,
          .scratch = &scratch_pairs<T>,
          .columns = &columns<T>,
          .columns_to_half = &columns_to_half<T>,
          .half_to_columns = &half_to_columns<T>,
          .rows = &rows<T>,
          .rows_to_half = &rows_to_half<T>,
          .half_to_rows = &half_to_rows<T>,
          .split_first = &split_first<T>,
          .split_second = &split_second<T>,
          .multiply = &multiply<T>,
          .pairs_to_half = &pairs_to_half<T>,
          .half_to_pairs = &half_to_pairs<T>,
          .complete = &complete<T>};
}

}  // namespace

extern const FftLoops fft_loops;
constexpr FftLoops fft_loops = {loops_of<float>(), loops_of<double>()};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
