// Owns Vector, as many elements as fill a register, for kernels that are compiled once per
// instruction set and must say themselves how elements move between lanes.
//
// Loops that a compiler can vectorize are written as loops instead.
#pragma once

#include "core/tensor/formula.h"

#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

#if RUSHLIGHT_ISA == 0
inline constexpr int kVectorBytes = 16;
#elif RUSHLIGHT_ISA == 3
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 64;
#endif

// At most 16 lanes, so that a square stays in the registers; AVX-512 has no shuffle of 64 bytes.
template <class T>
inline constexpr int kWidth =
    kVectorBytes / int(sizeof(T)) < 16 ? kVectorBytes / int(sizeof(T)) : 16;

namespace detail {
template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kWidth<T> * sizeof(T))));
};
}  // namespace detail
template <class T>
using Vector = typename detail::VectorOf<T>::type;

namespace detail {
template <size_t bytes>
struct BitsOf;
template <>
struct BitsOf<4> {
  using type = uint32_t;
};
template <>
struct BitsOf<8> {
  using type = uint64_t;
};
}  // namespace detail
// The bits of a Vector<T>, lane by lane.
template <class T>
using VectorBits = Vector<typename detail::BitsOf<sizeof(T)>::type>;

// How the compiler names the vector forms of functions (Intel, "Vector Function Application Binary
// Interface", 2015): _ZGV, the instruction set and the number of lanes, a v for each operand, _ and
// the function's name.
#if RUSHLIGHT_ISA == 0
#define RUSHLIGHT_FLOAT_LANES "bN4"
#define RUSHLIGHT_DOUBLE_LANES "bN2"
#elif RUSHLIGHT_ISA == 3
#define RUSHLIGHT_FLOAT_LANES "dN8"
#define RUSHLIGHT_DOUBLE_LANES "dN4"
#else
#define RUSHLIGHT_FLOAT_LANES "eN16"
#define RUSHLIGHT_DOUBLE_LANES "eN8"
#endif

template <class T>
[[gnu::always_inline]] inline Vector<T> broadcast(T x) {
  return x - Vector<T>{};  // which keeps -0
}

// From and to memory of any alignment.
template <class T>
[[gnu::always_inline]] inline Vector<T> load_vector(const T* from) {
  Vector<T> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store_vector(T* to, Vector<T> v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

// With AVX2 an instruction shuffles within blocks of 16 bytes.
template <class T>
inline constexpr int kShuffleBlock =
    kVectorBytes == 32 && kWidth<T> * sizeof(T) > 16 ? kWidth<T> / 2 : kWidth<T>;
// Where lanes come from that every_second takes within such blocks: with AVX2 the second and the
// third quarter change places.
template <class T>
constexpr int lane_in_blocks(int l) {
  constexpr int block = kShuffleBlock<T>, half = block / 2;
  return l / block * half + l % half + (l % block < half ? 0 : kWidth<T> / 2);
}

namespace detail {
template <class T, int half, int block, size_t... I>
[[gnu::always_inline]] inline Vector<T> interleave(Vector<T> a, Vector<T> b, Indices<I...>) {
  return __builtin_shufflevector(a, b,
                                 (int(I) / block * block + half * block / 2 + int(I) % block / 2 +
                                  (I % 2 ? kWidth<T> : 0))...);
}
template <class T, int half, size_t... I>
[[gnu::always_inline]] inline Vector<T> join_halves(Vector<T> a, Vector<T> b, Indices<I...>) {
  constexpr int middle = kWidth<T> / 2;
  return __builtin_shufflevector(
      a, b, (half * middle + int(I) % middle + (int(I) < middle ? 0 : kWidth<T>))...);
}
template <class T, int first, int block, size_t... I>
[[gnu::always_inline]] inline Vector<T> every_second(Vector<T> a, Vector<T> b, Indices<I...>) {
  return __builtin_shufflevector(a, b,
                                 (int(I) / block * block + 2 * int(I) % block + first +
                                  (int(I) % block < block / 2 ? 0 : kWidth<T>))...);
}
template <class T, size_t... I>
[[gnu::always_inline]] inline Vector<T> reversed_pairs(Vector<T> a, Indices<I...>) {
  return __builtin_shufflevector(a, a, (kWidth<T> - 2 - int(I) / 2 * 2 + int(I) % 2)...);
}
template <class T, size_t... I>
[[gnu::always_inline]] inline Vector<T> reordered(Vector<T> a, Indices<I...>) {
  return __builtin_shufflevector(a, a, lane_in_blocks<T>(int(I))...);
}
}  // namespace detail

// The first (half 0) or second lanes of a0 b0 a1 b1 ..., of each block of lanes.
template <class T, int half, int block = kWidth<T>>
[[gnu::always_inline]] inline Vector<T> interleave(Vector<T> a, Vector<T> b) {
  return detail::interleave<T, half, block>(a, b, detail::IndicesTo<size_t(kWidth<T>)>{});
}
// The first or second halves of a and b.
template <class T, int half>
[[gnu::always_inline]] inline Vector<T> join_halves(Vector<T> a, Vector<T> b) {
  return detail::join_halves<T, half>(a, b, detail::IndicesTo<size_t(kWidth<T>)>{});
}
// Lanes first, first + 2, ... of a followed by b, of each block of lanes.
template <class T, int first, int block = kWidth<T>>
[[gnu::always_inline]] inline Vector<T> every_second(Vector<T> a, Vector<T> b) {
  return detail::every_second<T, first, block>(a, b, detail::IndicesTo<size_t(kWidth<T>)>{});
}
// The pairs of lanes, from the last to the first.
template <class T>
[[gnu::always_inline]] inline Vector<T> reversed_pairs(Vector<T> a) {
  return detail::reversed_pairs<T>(a, detail::IndicesTo<size_t(kWidth<T>)>{});
}
// From the order of lane_in_blocks to that of memory, or back.
template <class T>
[[gnu::always_inline]] inline Vector<T> reordered(Vector<T> a) {
  return detail::reordered<T>(a, detail::IndicesTo<size_t(kWidth<T>)>{});
}

// Lane order[i] of a followed by b, for each i.
template <class T, class Order>
[[gnu::always_inline]] inline Vector<T> pick(Vector<T> a, Vector<T> b, Order order) {
#if __has_builtin(__builtin_shuffle)
  return __builtin_shuffle(a, b, order);
#else  // Clang has shuffles in known orders only
  T both[2 * kWidth<T>];
  store_vector(both, a);
  store_vector(both + kWidth<T>, b);
  Vector<T> picked;
  for (int i = 0; i < kWidth<T>; ++i) picked[i] = both[order[i] & (2 * kWidth<T> - 1)];
  return picked;
#endif
}

// x * y + z, rounded once where the processor has an instruction for it.
#if RUSHLIGHT_ISA == 4
[[gnu::always_inline]] inline Vector<float> multiply_add(Vector<float> x, Vector<float> y,
                                                         Vector<float> z) {
  return _mm512_fmadd_ps(x, y, z);
}
[[gnu::always_inline]] inline Vector<double> multiply_add(Vector<double> x, Vector<double> y,
                                                          Vector<double> z) {
  return _mm512_fmadd_pd(x, y, z);
}
#elif RUSHLIGHT_ISA == 3
[[gnu::always_inline]] inline Vector<float> multiply_add(Vector<float> x, Vector<float> y,
                                                         Vector<float> z) {
  return _mm256_fmadd_ps(x, y, z);
}
[[gnu::always_inline]] inline Vector<double> multiply_add(Vector<double> x, Vector<double> y,
                                                          Vector<double> z) {
  return _mm256_fmadd_pd(x, y, z);
}
#elif defined(__aarch64__)
[[gnu::always_inline]] inline Vector<float> multiply_add(Vector<float> x, Vector<float> y,
                                                         Vector<float> z) {
  return vfmaq_f32(z, x, y);
}
[[gnu::always_inline]] inline Vector<double> multiply_add(Vector<double> x, Vector<double> y,
                                                          Vector<double> z) {
  return vfmaq_f64(z, x, y);
}
#else
template <class V>
[[gnu::always_inline]] inline V multiply_add(V x, V y, V z) {
  return x * y + z;
}
#endif

// Whether a comparison is true in any lane.
#if RUSHLIGHT_ISA == 4
[[gnu::always_inline]] inline bool any(Vector<int32_t> mask) {
  return _mm512_movepi32_mask((__m512i)mask) != 0;
}
[[gnu::always_inline]] inline bool any(Vector<int64_t> mask) {
  return _mm512_movepi64_mask((__m512i)mask) != 0;
}
#elif RUSHLIGHT_ISA == 3
[[gnu::always_inline]] inline bool any(Vector<int32_t> mask) {
  return _mm256_movemask_ps((__m256)mask) != 0;
}
[[gnu::always_inline]] inline bool any(Vector<int64_t> mask) {
  return _mm256_movemask_pd((__m256d)mask) != 0;
}
#endif

// Transposes a square: log2(n) rounds that each interleave row i with row i + n / 2. With AVX2 so
// the quarters of the square, which then change places.
template <class T>
[[gnu::always_inline]] inline void transpose_vectors(Vector<T> (&a)[kWidth<T>]) {
  constexpr int n = kWidth<T>, block = kShuffleBlock<T>;
  Vector<T> b[n];
#pragma GCC unroll 4
  for (int round = 1; round < block; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      int row = i / (block / 2) * block + i % (block / 2);
      b[2 * i] = interleave<T, 0, block>(a[row], a[row + block / 2]);
      b[2 * i + 1] = interleave<T, 1, block>(a[row], a[row + block / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) a[i] = b[i];
  }
  if constexpr (block < n) {
#pragma GCC unroll 8
    for (int i = 0; i < block; ++i) {
      b[i] = join_halves<T, 0>(a[i], a[i + block]);
      a[i + block] = join_halves<T, 1>(a[i], a[i + block]);
      a[i] = b[i];
    }
  }
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
