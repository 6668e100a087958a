// Owns the conversion loops between all pairs of dtypes, compiled once per instruction set.
#include "core/tensor/formula.h"

#include "core/tensor/convert.h"
#include "core/tensor/half_vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// One struct stands for absent complex types outside the baseline set, to keep the indices.
struct Absent {};
#if RUSHLIGHT_ISA == 0
using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;
#else
using Complex64 = Absent;
using Complex128 = Absent;
#endif

#if RUSHLIGHT_ISA >= 3
template <class T>
constexpr bool kIsHalf = detail::kSame<T, Half> || detail::kSame<T, BFloat16>;

template <class Short>
Floats widen(const Short* from) {
  Halves x;
  __builtin_memcpy(&x, from, sizeof x);
  return detail::kSame<Short, Half> ? to_floats(x) : upper_to_floats(x);
}
template <class Short>
Halves shorten(const float* from) {
  Floats x;
  __builtin_memcpy(&x, from, sizeof x);
  return detail::kSame<Short, Half> ? to_halves(x) : round_to_upper(x);
}

// Converts whole registers of halves to floats or back, and returns how many elements these are.
template <class From, class To>
int64_t cast_registers(const From* from, To* to, int64_t n) {
  int64_t i = 0;
  if constexpr (detail::kSame<To, BFloat16>) {
    for (Floats x, y; i + 2 * kHalves <= n; i += 2 * kHalves) {
      __builtin_memcpy(&x, from + i, sizeof x);
      __builtin_memcpy(&y, from + i + kHalves, sizeof y);
      const HalvesPair rounded = round_to_upper(x, y);
      __builtin_memcpy(to + i, &rounded, sizeof rounded);
    }
  }
  for (; i + kHalves <= n; i += kHalves) {
    if constexpr (kIsHalf<From>) {
      Floats x = widen(from + i);
      __builtin_memcpy(to + i, &x, sizeof x);
    } else {
      Halves x = shorten<To>(from + i);
      __builtin_memcpy(to + i, &x, sizeof x);
    }
  }
  return i;
}
#endif

template <class From, class To>
void cast(const void* from, void* to, int64_t n) {
  To* out = static_cast<To*>(to);
  int64_t i = 0;
#if RUSHLIGHT_ISA >= 3
  if constexpr ((kIsHalf<From> && detail::kSame<To, float>) ||
                (kIsHalf<To> && detail::kSame<From, float>))
    i = cast_registers(static_cast<const From*>(from), out, n);
#endif
#pragma omp simd
  for (int64_t k = i; k < n; ++k) out[k] = convert<To>(element_at<From>(from, k));
}

// Between a short float and another dtype, as convert() goes: by way of floats, but in two loops,
// which the compiler vectorizes.
template <class From, class To>
constexpr bool kPassesFloat = (kShort<From> || kShort<To>) && !detail::kSame<From, float> &&
                              !detail::kSame<To, float> && !detail::kSame<From, To>;
template <class From, class To>
void cast_by_float(const void* from, void* to, int64_t n) {
  constexpr int64_t kRun = 256;
  float floats[kRun];
  for (int64_t i = 0; i < n; i += kRun) {
    const int64_t run = n - i < kRun ? n - i : kRun;
    cast<From, float>(static_cast<const From*>(from) + i, floats, run);
    cast<float, To>(floats, static_cast<To*>(to) + i, run);
  }
}

template <class From, class To>
constexpr CastLoop cast_loop() {
  if constexpr (detail::kSame<From, Absent> || detail::kSame<To, Absent>) return nullptr;
  else if constexpr (kPassesFloat<From, To>) return &cast_by_float<From, To>;
  else return &cast<From, To>;
}

template <class... T>
struct Types {};
using All = Types<bool, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t,
                  Half, BFloat16, float, double, Complex64, Complex128, Float8E4M3, Float8E5M2>;

template <class From, class... To>
constexpr void fill_row(CastLoop* row, Types<To...>) {
  int column = 0;
  ((row[column++] = cast_loop<From, To>()), ...);
}
template <class... From>
constexpr CastLoops make_casts(Types<From...>) {
  CastLoops casts{};
  int row = 0;
  (fill_row<From>(casts.run[row++], All{}), ...);
  return casts;
}

}  // namespace

extern const CastLoops cast_loops;
constexpr CastLoops cast_loops = make_casts(All{});

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
