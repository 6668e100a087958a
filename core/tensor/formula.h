// Owns the elementary functions of formulas for numbers, and POINTWISE as it reads in the files
// that are compiled once per instruction set: each formula becomes one vectorized loop per compute
// type. The rest of the vocabulary is formula_math.h; that for Tensors is ops/ops.h.
//
// See Note [One formula, three readings] in ops/op.h for what the parameter letters mean.
#pragma once

#ifndef RUSHLIGHT_ISA
#error "formula.h is for files compiled once per instruction set (RUSHLIGHT_ISA is set by CMake)"
#endif

#include <utility>

#include "core/base/half.h"
#include "core/tensor/loops.h"

#if RUSHLIGHT_ISA == 0
#include <complex>
#define RUSHLIGHT_ISA_NAMESPACE isa_v0
#elif RUSHLIGHT_ISA == 3
#define RUSHLIGHT_ISA_NAMESPACE isa_v3
#else
#define RUSHLIGHT_ISA_NAMESPACE isa_v4
#endif

// libmvec has vector forms of these on x86-64; the attribute lets the vectorizer call them. Not of
// exp: its vector form calls the scalar one for every result that overflows or vanishes, and
// softmax has many of those.
#define RUSHLIGHT_VECTOR_MATH(_)                                                           \
  _(exp2) _(expm1) _(log) _(log2) _(log10) _(log1p) _(sin) _(cos) _(tan) _(asin)     \
  _(acos) _(atan) _(sinh) _(cosh) _(tanh) _(asinh) _(acosh) _(atanh) _(erf) _(erfc) _(cbrt)
#define RUSHLIGHT_VECTOR_MATH_2(_) _(atan2) _(hypot)

#if defined(__x86_64__) && __has_attribute(simd)
#define RUSHLIGHT_HAS_VECTOR_MATH 1
#define RUSHLIGHT_SIMD __attribute__((simd("notinbranch"), const))
#else
#define RUSHLIGHT_HAS_VECTOR_MATH 0
#define RUSHLIGHT_SIMD __attribute__((const))
#endif

// Where the processor has fused products, these are ours (own_math.h). They keep the names of the
// library's here, which tell the compiler that it may compute them where a condition leaves them
// out.
#define RUSHLIGHT_OWN_MATH(_)                                                                \
  _(expm1) _(log) _(log2) _(log10) _(log1p) _(sin) _(cos) _(asin) _(acos) _(atan) _(sinh)    \
  _(cosh) _(asinh) _(acosh) _(atanh)

extern "C" {
#if RUSHLIGHT_HAS_VECTOR_MATH && RUSHLIGHT_ISA >= 3
#define RUSHLIGHT_HAS_OWN_MATH 1
#define RUSHLIGHT_DECLARE(name)                                                 \
  RUSHLIGHT_SIMD float name##f(float) noexcept asm("rushlight_" #name "f");     \
  RUSHLIGHT_SIMD double name(double) noexcept asm("rushlight_" #name);
RUSHLIGHT_OWN_MATH(RUSHLIGHT_DECLARE)
#undef RUSHLIGHT_DECLARE
RUSHLIGHT_SIMD double tanh(double) noexcept asm("rushlight_tanh");
RUSHLIGHT_SIMD float atan2f(float, float) noexcept asm("rushlight_atan2f");
RUSHLIGHT_SIMD double atan2(double, double) noexcept asm("rushlight_atan2");
#else
#define RUSHLIGHT_HAS_OWN_MATH 0
#endif
#define RUSHLIGHT_DECLARE(name) \
  RUSHLIGHT_SIMD float name##f(float) noexcept; \
  RUSHLIGHT_SIMD double name(double) noexcept;
RUSHLIGHT_VECTOR_MATH(RUSHLIGHT_DECLARE)
#undef RUSHLIGHT_DECLARE
#define RUSHLIGHT_DECLARE(name)                        \
  RUSHLIGHT_SIMD float name##f(float, float) noexcept; \
  RUSHLIGHT_SIMD double name(double, double) noexcept;
RUSHLIGHT_VECTOR_MATH_2(RUSHLIGHT_DECLARE)
RUSHLIGHT_DECLARE(pow)
#undef RUSHLIGHT_DECLARE
// The library has none: fmod_isa.cpp.
RUSHLIGHT_SIMD float rushlight_fmodf(float, float) noexcept;
RUSHLIGHT_SIMD double rushlight_fmod(double, double) noexcept;
double lgamma_r(double, int*) noexcept;
}

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

#define RUSHLIGHT_DEFINE(name)                            \
  inline float name(float x) { return ::name##f(x); }     \
  inline double name(double x) { return ::name(x); }
RUSHLIGHT_VECTOR_MATH(RUSHLIGHT_DEFINE)
#undef RUSHLIGHT_DEFINE
#define RUSHLIGHT_DEFINE(name)                                      \
  inline float name(float x, float y) { return ::name##f(x, y); }   \
  inline double name(double x, double y) { return ::name(x, y); }
RUSHLIGHT_VECTOR_MATH_2(RUSHLIGHT_DEFINE)
#undef RUSHLIGHT_DEFINE
#define RUSHLIGHT_DEFINE(name)                                       \
  inline float name(float x) { return __builtin_##name##f(x); }      \
  inline double name(double x) { return __builtin_##name(x); }
RUSHLIGHT_DEFINE(sqrt)
RUSHLIGHT_DEFINE(floor)
RUSHLIGHT_DEFINE(ceil)
RUSHLIGHT_DEFINE(trunc)
#undef RUSHLIGHT_DEFINE
#define RUSHLIGHT_DEFINE(name)                                                 \
  inline float name(float x, float y) { return __builtin_##name##f(x, y); }    \
  inline double name(double x, double y) { return __builtin_##name(x, y); }
RUSHLIGHT_DEFINE(copysign)
#undef RUSHLIGHT_DEFINE

// x * y + z, rounded once where the processor does that as fast as it multiplies.
inline float multiply_add(float x, float y, float z) {
#if defined(__FP_FAST_FMAF) || defined(__FMA__)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}
inline double multiply_add(double x, double y, double z) {
#if defined(__FP_FAST_FMA) || defined(__FMA__)
  return __builtin_fma(x, y, z);
#else
  return x * y + z;
#endif
}

// Half to even, as IEEE and NumPy round.
inline float round(float x) { return __builtin_rintf(x); }
inline double round(double x) { return __builtin_rint(x); }
inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }

// libmvec's vector form calls the scalar one for every negative base, so it gets the magnitude.
template <class T, class Pow>
inline T signed_power(T base, T exponent, Pow pow) {
  T magnitude = pow(abs(base), exponent), half = exponent / 2;
  bool whole = trunc(exponent) == exponent, odd = whole & (trunc(half) != half);
  bool is_finite = base - base == 0;
  return (base < 0) & is_finite & !whole ? T(__builtin_nan(""))
         : odd                           ? copysign(magnitude, base)
                                         : magnitude;
}
inline float pow(float x, float y) {
  return signed_power(x, y, [](float a, float b) { return ::powf(a, b); });
}
inline double pow(double x, double y) {
  return signed_power(x, y, [](double a, double b) { return ::pow(a, b); });
}

inline float fmod(float x, float y) { return ::rushlight_fmodf(x, y); }
inline double fmod(double x, double y) { return ::rushlight_fmod(x, y); }

inline double lgamma(double x) {
  int sign;  // lgamma itself would write it to a global variable
  return ::lgamma_r(x, &sign);
}
// A product that is rounded before it is added.
template <class T>
inline T rounded(T x) {
#if __has_builtin(__builtin_assoc_barrier)
  return __builtin_assoc_barrier(x);
#else
  return x;
#endif
}

// As in NumPy's arrays.
template <class T>
inline constexpr int kComplexAlignment = alignof(T);

#if RUSHLIGHT_ISA == 0
// Complex formulas of more than arithmetic are compiled for the baseline set only: std::complex
// defines shared code. So are those for uint64, which is rare.
// What std has (exp, abs, conj, ...) is found by argument-dependent lookup.
template <class T>
using Complex = std::complex<T>;
#endif

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE

#include "core/tensor/complex.h"
#include "core/tensor/formula_math.h"
#include "core/tensor/half_vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

// Near 0 the argument is moved to between 1.5 and 2.5, by the product of the numbers in between;
// there lgamma is its distance from 2, where it is 0, times a polynomial (a Chebyshev
// interpolation). Far from 0 it is Stirling's series, reflected for negative numbers (Abramowitz
// and Stegun 6.1.15 to 6.1.17, 6.1.41). In double, which keeps its digits near the other zeros.
inline float lgamma(float value) {
  constexpr double kLogPi = 1.1447298858494002, kHalfLogTwoPi = 0.9189385332046728;
  constexpr double kNear = 8.5;
  constexpr int kMostSteps = 10;
  double x = double(value), nearest = round(x), distance = x - nearest;
  bool is_near = abs(x) <= kNear, is_below = nearest < 2, reflects = x < 0;
  double first = is_below ? x : distance + 2, steps = abs(nearest - 2), product = 1;
  for (int k = 0; k < kMostSteps; ++k) product *= k < steps ? first + k : 1;
  double a = reflects ? 1 - x : x, logarithm = log(is_near ? abs(product) : a);
  double near =
      distance * polynomial(distance, -1.1296499102214296e-05, 2.4487052975853987e-05,
                            -4.4324684533065815e-05, 9.816870450896373e-05, -0.00022324653987287443,
                            0.0005098661348137004, -0.0011927471573807307, 0.0028904958630843014,
                            -0.007385551240791602, 0.020580808882117916, -0.06735230105130044,
                            0.32246703342004873, 0.42278433509846713) +
      (is_below ? -logarithm : logarithm);
  double inverse = 1 / a;
  double far = (a - 0.5) * logarithm - a + kHalfLogTwoPi +
               inverse * polynomial(inverse * inverse, 1.0 / 1260, -1.0 / 360, 1.0 / 12);
  // sin(pi |distance|)
  double sine =
      abs(distance) * polynomial(distance * distance, 0.0004474920849077101, -0.007364005472115722,
                                 0.08214479467064854, -0.5992644339357286, 2.550164035906745,
                                 -5.167712779987959, 3.141592653589635);
  double reflected = kLogPi - double(log(float(sine))) - far;
  double result = is_near ? near : reflects ? reflected : far;
  return x - x == 0 ? float(result) : float(x * x);
}

namespace detail {

template <size_t... I>
using Indices = std::index_sequence<I...>;
template <size_t N>
using IndicesTo = std::make_index_sequence<N>;

// Types that loops over narrow integers compute in.
template <class T>
inline constexpr bool kIsNarrow =
    kSame<T, int32_t> || kSame<T, int16_t> || kSame<T, int8_t> || kSame<T, uint8_t>;

template <class F, class T, class Memory, size_t I, bool repeated>
struct Operand {
  static constexpr bool kMask = read_params(F::params).is_mask[I];
  static auto at(const void* const* operands, int64_t i) {
    if constexpr (repeated) i = 0;
    // GCC has no vectors of bool, but of bytes.
    if constexpr (kSame<Memory, BFloat16>)
      return to_float(static_cast<const BFloat16*>(operands[I])[i]);
    else if constexpr (kMask) return static_cast<const uint8_t*>(operands[I])[i] != 0;
    else if constexpr (kSame<Memory, bool>)
      return T(static_cast<const uint8_t*>(operands[I])[i] != 0);
    else return T(static_cast<const Memory*>(operands[I])[i]);
  }
};

template <class F, class T, class Memory, int repeated, size_t... I, size_t... J>
[[gnu::always_inline]] inline auto evaluate(const void* const* operands, const T* scalars,
                                            int64_t i, Indices<I...>, Indices<J...>) {
  (void)scalars;
  auto result = F::template apply<T, T, bool>(
      Operand<F, T, Memory, I, int(I) == repeated>::at(operands, i)..., scalars[J]...);
  if constexpr (kSame<Memory, BFloat16>) {
    return to_bfloat16(result);
  } else if constexpr (!kIsNarrow<T>) {
    return typename Given<decltype(result)>::type(result);
  } else {
    // Here an int may be a number; int64 tells.
    using Result = decltype(evaluate<F, int64_t, int64_t, repeated>(
        nullptr, nullptr, 0, Indices<I...>{}, Indices<J...>{}));
    if constexpr (kSame<Result, bool> || kSame<Memory, bool>) return uint8_t(result != 0);
    else return Memory(result);
  }
}

// What has vector forms, and the functions made of it whose loops the vectorizer takes: the others
// are scalar everywhere.
#define RUSHLIGHT_NAME(name) "(" #name ")"
inline constexpr const char* kVectorFunctions =
    RUSHLIGHT_VECTOR_MATH(RUSHLIGHT_NAME) RUSHLIGHT_VECTOR_MATH_2(RUSHLIGHT_NAME)
    "(pow)(softplus)(tanh_softplus)(lgamma)(digamma)(trigamma)(logaddexp)(xlogy)(xlog1py)(entr)"
    "(ldexp)(normal_cdf)(ndtr)(log_ndtr)(erfinv)"
    "(bessel_j0)(bessel_j1)(bessel_y0)(bessel_y1)(spherical_bessel_j0)(modified_bessel_k0)"
    "(modified_bessel_k1)(scaled_modified_bessel_k0)(scaled_modified_bessel_k1)";
#undef RUSHLIGHT_NAME

// Whether complex numbers need no more than PlainComplex.
consteval bool is_plain(const char* text) {
  return calls_only(text, "(S)(T)(select)(conj)(real)(reciprocal)(isnan)(sgn)");
}

template <class T>
inline constexpr bool kIsPlain = false;
template <class T>
inline constexpr bool kIsPlain<PlainComplex<T>> = true;

// Operand number `repeated`, if there is one, is a single element. The formula computes in T and
// reads Memory.
template <class F, class T, int repeated = -1, class Memory = T>
struct Loop {
  static constexpr FormulaParams kParams = read_params(F::params);
  using Operands = IndicesTo<size_t(kParams.operands)>;
  using Scalars = IndicesTo<size_t(kParams.scalars)>;
  using Result =
      decltype(evaluate<F, T, Memory, repeated>(nullptr, nullptr, 0, Operands{}, Scalars{}));

  static constexpr Stored kStored = kSame<Result, T>      ? Stored::same
                                    : kSame<Result, bool> ? Stored::boolean
                                                          : Stored::real;

  static void run(const void* const* operands, const void* scalars, void* result, int64_t n) {
    if constexpr (RUSHLIGHT_HAS_VECTOR_MATH && calls_any(F::text, kVectorFunctions) &&
                  (kSame<T, float> || kSame<T, double>))
      run_padded(operands, scalars, result, n);
    else run_all(operands, scalars, result, n);
  }

  static void run_all(const void* const* operands, const void* scalars, void* result, int64_t n) {
    // Copies in locals tell the vectorizer that the stores do not change them.
    const void* in[kMaxOperands];
    for (int k = 0; k < kParams.operands; ++k) in[k] = operands[k];
    [[maybe_unused]] alignas(Memory) char element[sizeof(Memory)];
    if constexpr (repeated >= 0) {
      __builtin_memcpy(element, operands[repeated], sizeof element);
      in[repeated] = element;
    }
    T s[kMaxScalars];
    for (int k = 0; k < kParams.scalars; ++k) s[k] = static_cast<const T*>(scalars)[k];
    Result* out = static_cast<Result*>(result);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      out[i] = evaluate<F, T, Memory, repeated>(in, s, i, Operands{}, Scalars{});
  }

  static constexpr int64_t kLanes = 16;  // of floats, in the longest vectors

  // libmvec rounds otherwise than the scalar functions. So that an element does not depend on its
  // place, what does not fill a vector is computed in one that repeats its first element.
  static void run_padded(const void* const* operands, const void* scalars, void* result,
                         int64_t n) {
    int64_t whole = n & -kLanes, rest = n - whole;
    if (whole) run_whole(operands, scalars, result, whole);
    if (rest == 0) return;
    alignas(64) T padded[kParams.operands][kLanes];
    alignas(64) Result last[kLanes];
    const void* in[kMaxOperands];
    auto pad = [&](auto* to, const auto* from) {
      __builtin_memcpy(to, from, size_t(rest) * sizeof(*from));
      for (int64_t i = rest; i < kLanes; ++i) to[i] = *from;
    };
    for (int k = 0; k < kParams.operands; ++k) {
      in[k] = k == repeated ? operands[k] : padded[k];
      if (k == repeated) continue;
      if (kParams.is_mask[k])
        pad(reinterpret_cast<uint8_t*>(padded[k]),
            static_cast<const uint8_t*>(operands[k]) + whole);
      else pad(padded[k], static_cast<const T*>(operands[k]) + whole);
    }
    run_whole(in, scalars, last, kLanes);
    __builtin_memcpy(static_cast<Result*>(result) + whole, last, size_t(rest) * sizeof(Result));
  }

  // n is a multiple of the lanes, so that the compiler adds no scalar loop for a rest; nor may it
  // make another loop for the one vector of a rest, which would round otherwise.
  [[gnu::noipa, gnu::noinline]] static void run_whole(const void* const* operands,
                                                      const void* scalars, void* result,
                                                      int64_t n) {
    run_all(operands, scalars, result, n & -kLanes);
  }
};

// The loop of a formula, `Of<repeated>`, and those that repeat an element if they are worth the
// code: where that is common, of two numbers and in sums of products.
template <class F, bool is_common, template <int> class Of>
constexpr PointwiseKernel kernel_of() {
  constexpr FormulaParams params = read_params(F::params);
  constexpr int most = params.kind == 'N' ? 3 : 2;
  PointwiseKernel kernel{&Of<-1>::run};
  if constexpr (is_common && !params.has_mask() && params.operands >= 2 &&
                params.operands <= most) {
    kernel.repeating[0] = &Of<0>::run;
    kernel.repeating[1] = &Of<1>::run;
    if constexpr (params.operands == 3) kernel.repeating[2] = &Of<2>::run;
  }
  return kernel;
}

template <class F, class T, class Memory>
struct LoopsOver {
  template <int repeated>
  using Of = Loop<F, T, repeated, Memory>;
};

template <class F, class T>
constexpr void add_loop(PointwiseLoops& loops, Compute compute) {
  constexpr bool is_common =
      kSame<T, float> || kSame<T, double> || kSame<T, int64_t> || kIsPlain<T>;
  loops.kernels[int(compute)] = kernel_of<F, is_common, LoopsOver<F, T, T>::template Of>();
  loops.stored[int(compute)] = Loop<F, T>::kStored;
}

// A float16 or bfloat16 as formulas see it that only move bits.
struct SignedBits {
  uint16_t bits;

  friend SignedBits operator-(SignedBits x) { return {uint16_t(x.bits ^ 0x8000)}; }
  friend SignedBits abs(SignedBits x) { return {uint16_t(x.bits & 0x7fff)}; }
  friend SignedBits copysign(SignedBits x, SignedBits sign) {
    return {uint16_t((x.bits & 0x7fff) | (sign.bits & 0x8000))};
  }
};

// Whether results are operands or small whole numbers, so that nothing is to be rounded.
consteval bool keeps_digits(const char* text) {
  int digits = 0;
  for (const char* p = text; *p; ++p) {
    if (*p == '+' || *p == '-' || *p == '*' || *p == '/' || *p == '.') return false;
    digits = *p >= '0' && *p <= '9' ? digits + 1 : 0;
    if (digits > 2) return false;
  }
  return calls_only(text,
                    "(S)(T)(select)(min)(max)(abs)(clamp)(sign)(isnan)(floor)(ceil)(trunc)(round)");
}

#if RUSHLIGHT_ISA >= 3
// The loop of a formula over halves, which converts one register of each operand at a time, or two
// where bfloat16 is rounded. The vectorizer would choose between results bit by bit, once for each
// use of them in rounding.
template <class F, class Short, int repeated>
struct HalfLoop {
  using InFloat = Loop<F, float>;
  static constexpr int kCount = InFloat::kParams.operands;
  static constexpr bool kIsHalf = kSame<Short, Half>;
  static constexpr bool kRounds = !(keeps_digits(F::text) && InFloat::kParams.scalars == 0);
  static constexpr bool kInPairs = !kIsHalf && kRounds;
  static constexpr int kStep = kInPairs ? 2 * kHalves : kHalves;

  static void run(const void* const* operands, const void* scalars, void* result, int64_t n) {
    const void* in[kCount];
    for (int k = 0; k < kCount; ++k) in[k] = operands[k];
    [[maybe_unused]] Short filled[kStep];
    if constexpr (repeated >= 0) {
      for (Short& element : filled) element = *static_cast<const Short*>(operands[repeated]);
      in[repeated] = filled;
    }
    float s[kMaxScalars];
    for (int k = 0; k < InFloat::kParams.scalars; ++k) s[k] = static_cast<const float*>(scalars)[k];
    Short* out = static_cast<Short*>(result);
    int64_t i = 0;
    for (; i + kStep <= n; i += kStep) run_step(in, s, i, out + i);
    if (i == n) return;
    Short rest[kCount][kStep]{}, last[kStep];
    const size_t bytes = size_t(n - i) * sizeof(Short);
    for (int k = 0; k < kCount; ++k) {
      if (k == repeated) continue;
      __builtin_memcpy(rest[k], static_cast<const Short*>(in[k]) + i, bytes);
      in[k] = rest[k];
    }
    run_step(in, s, 0, last);
    __builtin_memcpy(out + i, last, bytes);
  }

 private:
  [[gnu::always_inline]] static void run_step(const void* const* operands, const float* s,
                                              int64_t i, Short* out) {
    auto store = [=](auto halves) { __builtin_memcpy(out, &halves, sizeof halves); };
    const Floats first = compute(operands, s, i);
    if constexpr (kInPairs) store(round_to_upper(first, compute(operands, s, i + kHalves)));
    else if constexpr (kIsHalf) store(to_halves(first));
    else store(upper_halves(FloatBits(first)));
  }
  [[gnu::always_inline]] static Floats compute(const void* const* operands, const float* s,
                                               int64_t i) {
    Halves half;
    Floats in[kCount], computed;
    const void* lanes[kCount];
    for (int k = 0; k < kCount; ++k) {
      const Short* from = static_cast<const Short*>(operands[k]) + (k == repeated ? 0 : i);
      __builtin_memcpy(&half, from, sizeof half);
      in[k] = kIsHalf ? to_floats(half) : upper_to_floats(half);
      lanes[k] = &in[k];
    }
    float* results = reinterpret_cast<float*>(&computed);
#pragma omp simd
    for (int l = 0; l < kHalves; ++l)
      results[l] = evaluate<F, float, float, -1>(lanes, s, l, typename InFloat::Operands{},
                                                 typename InFloat::Scalars{});
    return computed;
  }
};

template <class F, class Short>
struct HalfLoops {
  template <int repeated>
  using Of = HalfLoop<F, Short, repeated>;
};
#endif

template <class F>
constexpr void add_half_loops(PointwiseLoops& loops) {
  if constexpr (moves_bits(F::text)) {
    loops.halves[0] = loops.halves[1] = {&Loop<F, SignedBits>::run};
  } else if constexpr (suits_halves(F::text) && !read_params(F::params).has_mask() &&
                       Loop<F, float>::kStored == Stored::same) {
#if RUSHLIGHT_ISA >= 3
    constexpr bool is_common = read_params(F::params).kind != 'T';
    loops.halves[0] = kernel_of<F, is_common, HalfLoops<F, Half>::template Of>();
    loops.halves[1] = kernel_of<F, is_common, HalfLoops<F, BFloat16>::template Of>();
#else
    if constexpr (!calls_any(F::text, kVectorFunctions))
      loops.halves[1] = {&Loop<F, float, -1, BFloat16>::run};
#endif
  }
}

// A scalar may lie outside the range of a narrow integer.
template <class F, class Memory>
using NarrowLoops =
    LoopsOver<F,
              std::conditional_t<is_narrowest(F::text) && read_params(F::params).scalars == 0 &&
                                     !kSame<Memory, bool>,
                                 Memory, int32_t>,
              Memory>;

template <class F, class... Memory>
constexpr void add_narrow_loops(PointwiseLoops& loops) {
  static_assert(sizeof...(Memory) == kNarrowCount);
  int i = 0;
  ((loops.narrow[i++] = kernel_of<F, true, NarrowLoops<F, Memory>::template Of>()), ...);
}

template <class F>
constexpr PointwiseLoops make_loops() {
  constexpr char kind = read_params(F::params).kind;
  PointwiseLoops loops{};
  if constexpr (kind != 'I') {
    add_loop<F, float>(loops, Compute::f32);
    add_loop<F, double>(loops, Compute::f64);
    add_half_loops<F>(loops);
  }
  if constexpr (kind == 'I' || kind == 'R' || kind == 'N') {
    add_loop<F, int64_t>(loops, Compute::i64);
    if constexpr (is_narrow(F::text))
      add_narrow_loops<F, bool, uint8_t, int8_t, int16_t, int32_t>(loops);
  }
#if RUSHLIGHT_ISA == 0
  if constexpr (kind == 'I' || kind == 'R' || kind == 'N')
    add_loop<F, uint64_t>(loops, Compute::u64);
  if constexpr ((kind == 'C' || kind == 'N') && !is_plain(F::text)) {
    add_loop<F, Complex<float>>(loops, Compute::c64);
    add_loop<F, Complex<double>>(loops, Compute::c128);
  }
#endif
  if constexpr ((kind == 'C' || kind == 'N') && is_plain(F::text)) {
    add_loop<F, PlainComplex<float>>(loops, Compute::c64);
    add_loop<F, PlainComplex<double>>(loops, Compute::c128);
  }
  return loops;
}

}  // namespace detail
}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE

#define POINTWISE(NAME, PARAMS, ...)                                                         \
  namespace RUSHLIGHT_ISA_NAMESPACE {                                                        \
  namespace formulas {                                                                       \
  struct NAME {                                                                              \
    static constexpr const char* params = #PARAMS;                                           \
    static constexpr const char* text = #__VA_ARGS__;                                        \
    template <class T, class S, class B, class R = T, class N = T, class C = T, class I = T> \
    [[gnu::always_inline]] static inline auto apply PARAMS {                                 \
      return __VA_ARGS__;                                                                    \
    }                                                                                        \
  };                                                                                         \
  }                                                                                          \
  extern const PointwiseLoops NAME;                                                          \
  constexpr PointwiseLoops NAME = detail::make_loops<formulas::NAME>();                      \
  }

// Declarations are host code.
#define OP(...)
