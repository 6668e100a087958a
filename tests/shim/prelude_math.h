// Owns CUDA's mathematics for a kernel on the processor: the C functions under the names and with
// the overloads that CUDA has, integer functions, conversions, and the fast ones, which are exact
// here. Only declarations and short functions: it stands before every kernel.
#pragma once

using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype((char*)nullptr - (char*)nullptr);

// The functions of the C library, and their overloads for float.
#define SHIM_1(name)                                                                               \
  extern "C" double name(double);                                                                  \
  extern "C" float name##f(float);                                                                 \
  inline float name(float x) { return name##f(x); }
#define SHIM_2(name)                                                                               \
  extern "C" double name(double, double);                                                          \
  extern "C" float name##f(float, float);                                                          \
  inline float name(float x, float y) { return name##f(x, y); }
#define SHIM_WITH(name, Second)                                                                    \
  extern "C" double name(double, Second);                                                          \
  extern "C" float name##f(float, Second);                                                         \
  inline float name(float x, Second second) { return name##f(x, second); }
#define SHIM_TO(Result, name)                                                                      \
  extern "C" Result name(double);                                                                  \
  extern "C" Result name##f(float);                                                                \
  inline Result name(float x) { return name##f(x); }
#define SHIM_NAMES_1(_)                                                                            \
  _(acos) _(acosh) _(asin) _(asinh) _(atan) _(atanh) _(cbrt) _(ceil) _(cos) _(cosh) _(erf) _(erfc) \
  _(exp) _(exp10) _(exp2) _(expm1) _(fabs) _(floor) _(lgamma) _(log) _(log10) _(log1p) _(log2)     \
  _(logb) _(nearbyint) _(rint) _(round) _(sin) _(sinh) _(sqrt) _(tan) _(tanh) _(tgamma) _(trunc)
#define SHIM_NAMES_2(_)                                                                            \
  _(atan2) _(copysign) _(fdim) _(fmax) _(fmin) _(fmod) _(hypot) _(nextafter) _(pow) _(remainder)
SHIM_NAMES_1(SHIM_1)
SHIM_NAMES_2(SHIM_2)
SHIM_WITH(frexp, int*)
SHIM_WITH(ldexp, int)
SHIM_WITH(scalbn, int)
SHIM_TO(int, ilogb)
SHIM_TO(long, lrint)
SHIM_TO(long, lround)
SHIM_TO(long long, llrint)
SHIM_TO(long long, llround)
#undef SHIM_NAMES_1
#undef SHIM_NAMES_2
#undef SHIM_1
#undef SHIM_2
#undef SHIM_WITH
#undef SHIM_TO
extern "C" double fma(double, double, double);
extern "C" float fmaf(float, float, float);
extern "C" double modf(double, double*);
extern "C" float modff(float, float*);
extern "C" void sincos(double, double*, double*);
extern "C" void sincosf(float, float*, float*);
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float modf(float x, float* whole) { return modff(x, whole); }
inline void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
inline float pow(float x, int y) { return powf(x, float(y)); }
inline double pow(double x, int y) { return pow(x, double(y)); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbit(x); }
inline bool signbit(double x) { return __builtin_signbit(x); }

// CUDA's own functions, through double, so that float's result is rounded once.
#define SHIM_OWN(name, expression)                                                                 \
  inline double name(double x) { return expression; }                                              \
  inline float name(float x) { return float(name(double(x))); }                                    \
  inline float name##f(float x) { return name(x); }
inline double shim_sin_half_turns(double x) { return sin(3.14159265358979323846 * x); }
inline double shim_fold(double x) { return x > 0.5 ? 1 - x : x < -0.5 ? -1 - x : x; }
constexpr double kShimSqrt2 = 1.41421356237309504880;
SHIM_OWN(rsqrt, 1 / sqrt(x))
SHIM_OWN(rcbrt, 1 / cbrt(x))
SHIM_OWN(sinpi, shim_sin_half_turns(shim_fold(remainder(x, 2.0))))
SHIM_OWN(cospi, shim_sin_half_turns(0.5 - fabs(remainder(x, 2.0))))
SHIM_OWN(erfinv, shim_registers.runtime->erfinv(x))
SHIM_OWN(erfcinv, shim_registers.runtime->erfcinv(x))
SHIM_OWN(erfcx, exp(x* x) * erfc(x))
SHIM_OWN(normcdf, erfc(x / -kShimSqrt2) / 2)
SHIM_OWN(normcdfinv, -kShimSqrt2* erfcinv(2 * x))
#undef SHIM_OWN

// Minimum and maximum; with a NaN, the other operand, as CUDA has it. Mixed operands are converted
// as the language converts them in a sum.
template <class T, class U>
inline auto max(T x, U y) -> decltype(x + y) {
  using Common = decltype(x + y);
  if constexpr (Common(0.5) != Common(0)) return fmax(Common(x), Common(y));
  else return Common(x) < Common(y) ? Common(y) : Common(x);
}
template <class T, class U>
inline auto min(T x, U y) -> decltype(x + y) {
  using Common = decltype(x + y);
  if constexpr (Common(0.5) != Common(0)) return fmin(Common(x), Common(y));
  else return Common(y) < Common(x) ? Common(y) : Common(x);
}
extern "C" int abs(int);
extern "C" long labs(long);
extern "C" long long llabs(long long);
inline long abs(long x) { return labs(x); }
inline long long abs(long long x) { return llabs(x); }
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }

// The fast forms are exact here.
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline void __sincosf(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
inline float fdividef(float x, float y) { return x / y; }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __drcp_rn(double x) { return 1 / x; }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

// Integers.
inline int __mulhi(int x, int y) { return int((long long)(x)*y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned long long)(x)*y >> 32; }
inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)(x)*y >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)(x)*y >> 64);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long reversed = 0;
  for (int bit = 0; bit < 64; ++bit) reversed |= (x >> bit & 1) << (63 - bit);
  return reversed;
}
inline unsigned __brev(unsigned x) { return __brevll(x) >> 32; }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long bytes = (unsigned long long)(y) << 32 | x;
  unsigned chosen = 0;
  for (int i = 0; i < 4; ++i) {
    chosen |= unsigned(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  }
  return chosen;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return ((unsigned long long)(high) << 32 | low) << (shift & 31) >> 32;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return ((unsigned long long)(high) << 32 | low) >> (shift & 31);
}

// Bits as they are, and conversions. Those to integers saturate and turn NaN into zero, as the
// device's do.
#define SHIM_BITS(name, To, From)                                                                  \
  inline To name(From x) { return __builtin_bit_cast(To, x); }
SHIM_BITS(__float_as_int, int, float)
SHIM_BITS(__float_as_uint, unsigned, float)
SHIM_BITS(__int_as_float, float, int)
SHIM_BITS(__uint_as_float, float, unsigned)
SHIM_BITS(__double_as_longlong, long long, double)
SHIM_BITS(__longlong_as_double, double, long long)
#undef SHIM_BITS
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)(high) << 32 | unsigned(low));
}
template <class To>
inline To shim_to_integer(double rounded) {
  constexpr To lowest = To(-1) < To(0) ? To(1ull << (8 * sizeof(To) - 1)) : To(0);
  if (isnan(rounded)) return 0;
  if (rounded < double(lowest)) return lowest;
  return rounded < double(To(~lowest)) + 1 ? To(rounded) : To(~lowest);
}
#define SHIM_TO_INTEGER(from, From, to, To)                                                        \
  inline To __##from##2##to##_rn(From x) { return shim_to_integer<To>(rint(double(x))); }          \
  inline To __##from##2##to##_rz(From x) { return shim_to_integer<To>(trunc(double(x))); }         \
  inline To __##from##2##to##_rd(From x) { return shim_to_integer<To>(floor(double(x))); }         \
  inline To __##from##2##to##_ru(From x) { return shim_to_integer<To>(ceil(double(x))); }          \
  inline From __##to##2##from##_rn(To x) { return From(x); }
SHIM_TO_INTEGER(float, float, int, int)
SHIM_TO_INTEGER(float, float, uint, unsigned)
SHIM_TO_INTEGER(float, float, ll, long long)
SHIM_TO_INTEGER(float, float, ull, unsigned long long)
SHIM_TO_INTEGER(double, double, int, int)
SHIM_TO_INTEGER(double, double, uint, unsigned)
SHIM_TO_INTEGER(double, double, ll, long long)
SHIM_TO_INTEGER(double, double, ull, unsigned long long)
#undef SHIM_TO_INTEGER
inline float __double2float_rn(double x) { return float(x); }
