// Owns the passes of the FFT kernels: where the numbers of columns come from and go to, and the
// butterflies between.
#pragma once

#include "core/ops/fft/fft_loops.h"
#include "core/tensor/vectors.h"

#include "core/ops/fft/fft_radix.h"  // after vectors.h

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

// Pairs (real, imaginary) in memory. Their lanes are in the order of lane_in_blocks, which halves
// the shuffles; in_order() brings them into that of memory, and back.
template <class T>
[[gnu::always_inline]] inline Lanes<T> lanes_of(Vector<T> a, Vector<T> b) {
  return {every_second<T, 0, kShuffleBlock<T>>(a, b), every_second<T, 1, kShuffleBlock<T>>(a, b)};
}
template <int half, class T>
[[gnu::always_inline]] inline Vector<T> pairs_of(Lanes<T> x) {
  return interleave<T, half, kShuffleBlock<T>>(x.re, x.im);
}
template <class T>
[[gnu::always_inline]] inline Lanes<T> load_pairs(const T* from) {
  return lanes_of<T>(load_vector(from), load_vector(from + kWidth<T>));
}
template <class T>
[[gnu::always_inline]] inline void store_pairs(T* to, Lanes<T> x) {
  store_vector(to, pairs_of<0>(x));
  store_vector(to + kWidth<T>, pairs_of<1>(x));
}
template <class T>
[[gnu::always_inline]] inline Lanes<T> in_order(Lanes<T> x) {
  return {reordered<T>(x.re), reordered<T>(x.im)};
}

// The same from the last pair to the first.
template <class T>
[[gnu::always_inline]] inline Lanes<T> load_backwards(const T* from) {
  return lanes_of<T>(reversed_pairs<T>(load_vector(from + kWidth<T>)),
                     reversed_pairs<T>(load_vector(from)));
}
template <class T>
[[gnu::always_inline]] inline void store_backwards(T* to, Lanes<T> x) {
  store_vector(to, reversed_pairs<T>(pairs_of<1>(x)));
  store_vector(to + kWidth<T>, reversed_pairs<T>(pairs_of<0>(x)));
}

// ---- where columns come from and go to ----------------------------------------------------------

// Results times a number; of inverse transforms their conjugates.
template <class T>
struct Scale {
  T re, im;
  Scale(T factor, bool inverse) : re(factor), im(inverse ? -factor : factor) {}
  [[gnu::always_inline]] Lanes<T> operator()(Lanes<T> x) const { return {x.re * re, x.im * im}; }
};

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

// Rows of pairs in memory. Those of inverse transforms are conjugated, here and in the results.
template <class T>
struct PairsFrom {
  const T* data;
  int64_t stride;
  bool inverse;
  [[gnu::always_inline]] Lanes<T> load(int64_t i) const {
    Lanes<T> x = load_pairs(data + i * 2 * stride);
    return {x.re, x.im * (inverse ? T(-1) : T(1))};
  }
};
template <class T>
struct PairsTo {
  T* data;
  int64_t stride;
  Scale<T> scale;
  [[gnu::always_inline]] void store(int64_t i, Lanes<T> x) const {
    store_pairs(data + i * 2 * stride, scale(x));
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
struct RealTo {
  T* data;
  int64_t stride;
  Scale<T> scale;
  [[gnu::always_inline]] void store(int64_t i, Lanes<T> x) const {
    T* row = data + i * 2 * stride;
    Lanes<T> y = scale(x);
    store_vector(row, y.re);
    store_vector(row + stride, y.im);
  }
};

// The middle of a split transform: rows of n2 real numbers followed by n2 imaginary ones. Rotates
// by such rows of `gap` numbers.
template <class T>
struct MiddleTo {
  T* data;
  int64_t n2;
  const T* rotations;
  int64_t gap;
  [[gnu::always_inline]] void store(int64_t i, Lanes<T> x) const {
    const T* by = rotations + i * 2 * gap;
    Lanes<T> y = in_order(x) * Lanes<T>{load_vector(by), load_vector(by + gap)};
    T* row = data + i * 2 * n2;
    store_vector(row, y.re);
    store_vector(row + n2, y.im);
  }
};

// The rotations of a block of columns of a long transform, as n1 rows of real and imaginary lanes.
template <class T>
void make_rotations(const FftSplit<T>& plan, int64_t column, T* to) {
  // The lanes may begin within a block and end in the next: the tables have two blocks.
  const T* lane = plan.lane + column % kFftBlock;
  for (int64_t k = 0; k < plan.first.n; ++k, lane += 4 * kFftBlock) {
    int64_t turns = k * (column / kFftBlock);
    const double* a = plan.coarse + turns / kFftFine * 2;
    const double* b = plan.fine + turns % kFftFine * 2;
    Blocks<T>{to}.store(k, all_lanes(T(a[0] * b[0] - a[1] * b[1]), T(a[0] * b[1] + a[1] * b[0])) *
                               Lanes<T>{load_vector(lane), load_vector(lane + 2 * kFftBlock)});
  }
}

// ---- passes -------------------------------------------------------------------------------------

// One pass of radix R over m * R * s rows: butterfly (p, q) takes rows q + s (p + m j) and gives
// rows q + s (R p + j), turned by w^(p j). The last pass, where m is 1, turns nothing.
template <int R, bool kLast, class T, class From, class To>
[[gnu::noinline]] void pass(From from, To to, int64_t m, int64_t s, const T* w) {
  Lanes<T> x[R], turns[R];
  for (int64_t p = 0; p < (kLast ? 1 : m); ++p, w += 2 * (R - 1)) {
    if constexpr (!kLast) {
#pragma GCC unroll 16
      for (int j = 1; j < R; ++j) turns[j] = all_lanes(w[2 * j - 2], w[2 * j - 1]);
    }
    for (int64_t q = 0; q < s; ++q) {
#pragma GCC unroll 16
      for (int j = 0; j < R; ++j) x[j] = from.load(q + s * (p + (kLast ? 1 : m) * j));
      Dft<R>::run(x);
      if constexpr (!kLast) {
#pragma GCC unroll 16
        for (int j = 1; j < R; ++j) x[j] = x[j] * turns[j];
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

template <bool kLast, class T, class From, class To>
void any_pass(const FftColumns<T>& plan, int i, int64_t s, From from, To to) {
  int64_t r = plan.radix[i], m = plan.n / (r * s);
  const T* w = plan.twiddles[i];
  switch (r) {
    case 2: return pass<2, kLast, T>(from, to, m, s, w);
    case 3: return pass<3, kLast, T>(from, to, m, s, w);
    case 4: return pass<4, kLast, T>(from, to, m, s, w);
    case 5: return pass<5, kLast, T>(from, to, m, s, w);
    case 7: return pass<7, kLast, T>(from, to, m, s, w);
    case 8: return pass<8, kLast, T>(from, to, m, s, w);
    default: return odd_pass<T>(r, from, to, m, s, w, plan.turns[i]);
  }
}

// All passes. Scratch has room for the columns twice; `from` may be its first half, `to` what
// result_in() says.
template <class T, class From, class To>
void transform(const FftColumns<T>& plan, From from, To to, T* scratch) {
  Blocks<T> here{scratch}, there{scratch + plan.n * 2 * kWidth<T>};
  if (plan.passes == 1) return any_pass<true, T>(plan, 0, 1, from, to);
  int64_t s = plan.radix[0];
  any_pass<false, T>(plan, 0, 1, from, there);
  for (int i = 1; i + 1 < plan.passes; s *= plan.radix[i++]) {
    any_pass<false, T>(plan, i, s, there, here);
    Blocks<T> swap = here;
    here = there;
    there = swap;
  }
  any_pass<true, T>(plan, plan.passes - 1, s, there, to);
}

// The half of scratch that the last pass does not read.
template <class T>
T* result_in(const FftColumns<T>& plan, T* scratch) {
  return scratch + plan.passes % 2 * plan.n * 2 * kWidth<T>;
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
