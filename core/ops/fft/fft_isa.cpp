// Owns the FFT kernels: transforms of columns that run side by side in the lanes of vectors, so
// that butterflies need no shuffles. Longer ones are split into columns and rows.
//
// J. W. Cooley, J. W. Tukey: An algorithm for the machine calculation of complex Fourier series
// (1965); T. G. Stockham's order of the passes (in W. T. Cochran et al.: What is the fast Fourier
// transform?, 1967), which needs no bit reversal; D. H. Bailey: FFTs in external or hierarchical
// memory (1990). All transforms run forward: an inverse one is the conjugate of that of conjugates.
#include "core/ops/fft/fft_passes.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// ---- transforms ---------------------------------------------------------------------------------

constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

template <class T>
int64_t scratch_pairs(int64_t n) {
  return 3 * n * kWidth<T>;
}

template <class T>
void columns(const FftColumns<T>& plan, bool inverse, T scale, const T* in, int64_t in_stride,
             T* out, int64_t out_stride, T* scratch) {
  transform(plan, PairsFrom<T>{in, in_stride, inverse},
            PairsTo<T>{out, out_stride, {scale, inverse}}, scratch);
}

// Where up to kWidth rows begin. The lanes without a row repeat the first.
template <class T>
struct RowStarts {
  T* at[kWidth<T>];
  RowStarts(T* first, int64_t stride, int64_t count, auto row_of_lane) {
    for (int l = 0; l < kWidth<T>; ++l) {
      int64_t row = row_of_lane(l);
      at[l] = first + (row < count ? row : 0) * stride;
    }
  }
  RowStarts(T* first, int64_t stride, int64_t count)
      : RowStarts(first, stride, count, [](int l) { return l; }) {}
};

// Rows of at least a vector of elements go to blocks and back in squares that are transposed; the
// last square of a row may take elements again. `width` counts numbers, strides count pairs.
template <class T>
[[gnu::always_inline]] inline void load_rows(const T* in, int64_t in_stride, int64_t width,
                                             int64_t count, bool inverse, T* to) {
  constexpr int64_t lanes = kWidth<T>;
  RowStarts<const T> rows(in, 2 * in_stride, count);
  Vector<T> a[lanes];
  for (int64_t t = 0; t < width; t += lanes) {
    int64_t at = smaller(t, width - lanes);
#pragma GCC unroll 16
    for (int64_t l = 0; l < lanes; ++l) a[l] = load_vector(rows.at[l] + at);
    transpose_vectors<T>(a);
#pragma GCC unroll 16
    for (int64_t l = 0; l < lanes; ++l)
      store_vector(to + (at + l) * lanes, l % 2 && inverse ? -a[l] : a[l]);
  }
}
template <class T>
[[gnu::always_inline]] inline void store_rows(const T* from, int64_t width, T* out,
                                              int64_t out_stride, int64_t count) {
  constexpr int64_t lanes = kWidth<T>;
  RowStarts<T> rows(out, 2 * out_stride, count);
  Vector<T> a[lanes];
  for (int64_t t = 0; t < width; t += lanes) {
    int64_t at = smaller(t, width - lanes);
#pragma GCC unroll 16
    for (int64_t l = 0; l < lanes; ++l) a[l] = load_vector(from + (at + l) * lanes);
    transpose_vectors<T>(a);
    // The lanes without a row hold what the first one does.
#pragma GCC unroll 16
    for (int64_t l = 0; l < lanes; ++l) store_vector(rows.at[l] + at, a[l]);
  }
}

template <class T>
void rows(const FftColumns<T>& plan, bool inverse, T scale, const T* in, int64_t in_stride, T* out,
          int64_t out_stride, int64_t count, T* scratch) {
  T* result = result_in(plan, scratch);
  load_rows(in, in_stride, 2 * plan.n, count, inverse, scratch);
  transform(plan, Blocks<T>{scratch}, RealTo<T>{result, kWidth<T>, {scale, inverse}}, scratch);
  store_rows(result, 2 * plan.n, out, out_stride, count);
}

// n is at least a vector: the last block may take columns again.
template <class T>
void split_first(const FftSplit<T>& plan, const T* in, T* middle, int64_t begin, int64_t end,
                 T* scratch) {
  int64_t n1 = plan.first.n, n2 = plan.second.n;
  T* made = scratch + n1 * 4 * kWidth<T>;
  for (int64_t b = begin; b < end; ++b) {
    int64_t column = smaller(b * kWidth<T>, n2 - kWidth<T>);
    if (!plan.rotations) make_rotations(plan, column, made);
    const T* rotations = plan.rotations ? plan.rotations + column : made;
    int64_t gap = plan.rotations ? n2 : kWidth<T>;
    transform(plan.first, PairsFrom<T>{in + column * 2, n2, plan.inverse},
              MiddleTo<T>{middle + column, n2, rotations, gap}, scratch);
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
    RowStarts<const T> rows(middle + row * 2 * n2, 2 * n2, count, &lane_in_blocks<T>);
    for (int64_t t = 0; t < n2; t += lanes) {
      int64_t at = smaller(t, n2 - lanes);
      for (int64_t part = 0; part < 2; ++part) {
#pragma GCC unroll 16
        for (int64_t l = 0; l < lanes; ++l) a[l] = load_vector(rows.at[l] + part * n2 + at);
        transpose_vectors<T>(a);
#pragma GCC unroll 16
        for (int64_t l = 0; l < lanes; ++l)
          store_vector(scratch + ((at + l) * 2 + part) * lanes, a[l]);
      }
    }
    if (count == lanes) {
      transform(plan.second, Blocks<T>{scratch},
                PairsTo<T>{out + row * 2, n1, {scale, plan.inverse}}, scratch);
      continue;
    }
    T* few = result_in(plan.second, scratch);
    transform(plan.second, Blocks<T>{scratch}, PairsTo<T>{few, lanes, {scale, plan.inverse}},
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
      Lanes<T> a = load_pairs(in + 2 * k), b = load_backwards(in + 2 * other);
      unmix<kBack>(a, b, load_pairs(w + 2 * k));
      store_pairs(out + 2 * k, a * scale);
      store_backwards(out + 2 * other, b * scale);
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
// The conjugates, for an inverse transform.
template <class T, class Get>
[[gnu::always_inline]] inline void half_to_blocks(Get get, const T* w, int64_t m, Blocks<T> z) {
  Vector<T> first = get(0).re, last = get(m).re;
  z.store(0, {first + last, last - first});
  for (int64_t k = 1; 2 * k <= m; ++k) {
    Lanes<T> a = get(k), b = get(m - k);
    unmix<true>(a, b, all_lanes(w[2 * k], w[2 * k + 1]));
    z.store(k, conj(a));
    z.store(m - k, conj(b));
  }
}

template <class T>
void columns_to_half(const FftColumns<T>& plan, const T* w, T scale, const T* in, int64_t in_stride,
                     T* out, int64_t out_stride, T* scratch) {
  Blocks<T> z{result_in(plan, scratch)};
  transform(plan, RealFrom<T>{in, in_stride}, z, scratch);
  auto put = [=](int64_t row, Lanes<T> x) __attribute__((always_inline)) {
    store_pairs(out + row * 2 * out_stride, in_order(x));
  };
  blocks_to_half(z, w, scale, plan.n, put);
}

template <class T>
void rows_to_half(const FftColumns<T>& plan, const T* w, T scale, const T* in, int64_t in_stride,
                  T* out, int64_t out_stride, int64_t count, T* scratch) {
  int64_t m = plan.n;
  T* result = result_in(plan, scratch);
  Blocks<T> z{result};
  load_rows(in, in_stride, 2 * m, count, false, scratch);
  transform(plan, Blocks<T>{scratch}, z, scratch);
  auto put = [=](int64_t k, Lanes<T> x) __attribute__((always_inline)) { z.store(k, x); };
  blocks_to_half(z, w, scale, m, put);
  store_rows(result, 2 * m + 2, out, out_stride, count);
}

template <class T>
void half_to_columns(const FftColumns<T>& plan, const T* w, T scale, const T* in, int64_t in_stride,
                     T* out, int64_t out_stride, T* scratch) {
  Blocks<T> z{scratch};
  auto get = [=](int64_t row) __attribute__((always_inline)) {
    return in_order(load_pairs(in + row * 2 * in_stride));
  };
  half_to_blocks(get, w, plan.n, z);
  transform(plan, z, RealTo<T>{out, out_stride, {scale, true}}, scratch);
}

template <class T>
void half_to_rows(const FftColumns<T>& plan, const T* w, T scale, const T* in, int64_t in_stride,
                  T* out, int64_t out_stride, int64_t count, T* scratch) {
  int64_t m = plan.n;
  T* result = result_in(plan, scratch);
  Blocks<T> z{scratch};
  load_rows(in, in_stride, 2 * m + 2, count, false, scratch);
  auto get = [=](int64_t k) __attribute__((always_inline)) { return z.load(k); };
  half_to_blocks(get, w, m, z);
  transform(plan, z, RealTo<T>{result, kWidth<T>, {scale, true}}, scratch);
  store_rows(result, 2 * m, out, out_stride, count);
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
    store_backwards(row + 2 * (n - k - lanes + 1), conj(x));
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
