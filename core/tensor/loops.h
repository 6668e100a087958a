// Owns the shape of a compiled pointwise loop and the choice among instruction sets.
//
// Shared by host code and by the files compiled once per instruction set, so it includes nothing
// that defines code: an inline function compiled with AVX-512 must never reach an older processor.
#pragma once

#include <stddef.h>
#include <stdint.h>

// _(instruction set, ...): only x86-64 has several sets; elsewhere the default set serves.
#if defined(__x86_64__)
#define RUSHLIGHT_FOR_EACH_ISA(_, ...) \
  _(isa_v0, __VA_ARGS__) _(isa_v3, __VA_ARGS__) _(isa_v4, __VA_ARGS__)
#else
#define RUSHLIGHT_FOR_EACH_ISA(_, ...) _(isa_v0, __VA_ARGS__)
#endif
#define RUSHLIGHT_DECLARE_TABLE(isa, Table, name) \
  namespace isa {                                 \
  extern const Table name;                        \
  }
#define RUSHLIGHT_TABLE_ADDRESS(isa, name) &isa::name,

// Declares the table of loops that a *_isa.cpp file defines once per instruction set, and collects
// them as `name`_sets, among which active() picks.
#define ISA_TABLES(Table, name)                                \
  RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE_TABLE, Table, name) \
  static constexpr IsaSets<Table> name##_sets = {              \
      RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_TABLE_ADDRESS, name)};

namespace rushlight {

#define RUSHLIGHT_COUNT_ISA(isa, ...) +1
inline constexpr int kIsaCount = 0 RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_COUNT_ISA, );
#undef RUSHLIGHT_COUNT_ISA

// The types that formulas are compiled for. Every dtype computes in one of them.
enum class Compute : uint8_t { f32, f64, i64, u64, c64, c128 };
inline constexpr int kComputeCount = 6;

// What a loop stores: the compute type itself, a bool, or the real part type of a complex one.
enum class Stored : uint8_t { same, boolean, real };

inline constexpr int kMaxOperands = 6;
inline constexpr int kMaxScalars = 6;
inline constexpr int kMaxRepeating = 3;

// Runs one formula over n elements: every operand and the result are contiguous.
// The result may be the same memory as an operand, element for element.
using PointwiseLoop = void (*)(const void* const* operands, const void* scalars, void* result,
                               int64_t n);

// The loops of one formula for one type.
struct PointwiseKernel {
  PointwiseLoop run = nullptr;  // null where the formula has no meaning
  // The same with a single element as operand k for all n; null where there is no such loop.
  PointwiseLoop repeating[kMaxRepeating] = {};
};

// bool, uint8, int8, int16 and int32 have loops of their own, which compute in int32 or what they
// read, for formulas that give the same bits there: see is_narrow() and is_narrowest().
inline constexpr int kNarrowCount = 5;

struct PointwiseLoops {
  PointwiseKernel kernels[kComputeCount];
  Stored stored[kComputeCount];
  PointwiseKernel narrow[kNarrowCount] = {};  // they store what that of int64 stores
  PointwiseKernel halves[2] = {};             // of float16 and bfloat16, see suits_halves()
};

// Converts n elements from one dtype to another; one entry per pair, in the order of DType.
using CastLoop = void (*)(const void* from, void* to, int64_t n);
inline constexpr int kCastTypes = 17;
inline constexpr int kRealTypes = 13;  // of arithmetic: they come first
struct CastLoops {
  CastLoop run[kCastTypes][kCastTypes];  // complex pairs exist in the baseline set only
};

// Copies rows x columns elements: element (r, c) from `from + c * from_stride + r * size` to
// `to + r * to_stride + c * size`.
using TransposeLoop = void (*)(const char* from, int64_t from_stride, char* to, int64_t to_stride,
                               int64_t rows, int64_t columns);
// The same where column c begins at from + offsets[c].
using TransposeListedLoop = void (*)(const char* from, const int64_t* offsets, char* to,
                                     int64_t to_stride, int64_t rows, int64_t columns);
// Where the elements of several rows lie, in bytes.
struct RowStrides {
  int64_t row, step;
};
// Copies rows of n elements.
using RowsLoop = void (*)(char* to, RowStrides to_strides, const char* from,
                          RowStrides from_strides, int64_t rows, int64_t n);
// One entry per element size, 1 to 16 bytes in powers of two.
struct LayoutLoops {
  TransposeLoop transpose[5];
  TransposeListedLoop transpose_listed[5];
  RowsLoop copy_rows[5];
};

// The parameters of a formula, read from its text "(T input, S beta)".
// See Note [One formula, three readings] in ops/op.h for the letters.
struct FormulaParams {
  int operands = 0, scalars = 0;
  char kind = 'T';                  // the letter of its operands: T R N C or I
  bool is_mask[kMaxOperands] = {};  // operand i is a B

  constexpr bool has_mask() const {
    for (bool mask : is_mask)
      if (mask) return true;
    return false;
  }
};
consteval FormulaParams read_params(const char* text) {
  FormulaParams params;
  for (const char* p = text; *p; ++p) {
    if (*p != '(' && *p != ',') continue;
    const char* letter = p + 1;
    while (*letter == ' ') ++letter;
    if (*letter == 'S') {
      ++params.scalars;
    } else {
      if (*letter == 'B') params.is_mask[params.operands] = true;
      else params.kind = *letter;
      ++params.operands;
    }
  }
  return params;
}

// How many of the functions that the text of a formula calls are in the list, whose names stand in
// parentheses, or are not.
consteval int count_calls(const char* text, const char* list, bool listed) {
  auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  int count = 0;
  for (const char* name = text; *name; ++name) {
    if (!is_letter(*name) || (name != text && is_letter(name[-1]))) continue;
    const char* end = name;
    while (is_letter(*end)) ++end;
    if (*end != '(') continue;
    bool found = false;
    for (const char* entry = list; *entry; ++entry) {
      if (*entry != '(') continue;
      const char *a = entry + 1, *b = name;
      while (b != end && *a == *b) ++a, ++b;
      found |= b == end && *a == ')';
    }
    count += found == listed;
  }
  return count;
}
consteval bool calls_any(const char* text, const char* list) {
  return count_calls(text, list, true) > 0;
}
consteval bool calls_only(const char* text, const char* list) {
  return count_calls(text, list, false) == 0;
}
inline constexpr const char* kNarrowFunctions =
    "(select)(min)(max)(fmin)(fmax)(clamp)(abs)(sign)(sgn)(floor)(ceil)(trunc)(round)(left_shift)"
    "(right_shift)(floor_divide)(trunc_divide)(remainder)(fmod)(isnan)(isinf)(isfinite)(signbit)"
    "(gcd)";
inline constexpr const char* kCheapFunctions =
    "(S)(T)(B)(select)(min)(max)(abs)(clamp)(sign)(square)(multiply_add)(conj)(real)(isnan)";

// Whether a formula of integers has the same low bits when it computes in fewer of them. Sums and
// products do, and comparisons of what is read; but not comparisons of sums, which wrap around.
consteval bool is_narrow(const char* text) {
  bool sums = false, compares = calls_any(text, kNarrowFunctions), divides = false;
  for (const char* p = text; *p; ++p) {
    sums |= *p == '+' || *p == '-' || *p == '*';
    compares |= *p == '<' || *p == '>' || *p == '=' || *p == '!';
    divides |= *p == '/' || *p == '%';
  }
  return count_calls(text, kNarrowFunctions, false) == count_calls(text, "(S)", true) && !divides &&
         !(sums && compares);
}

// Whether it may compute in the dtype that it reads: C++ would make ints of sums, and GCC, which
// finds out that it need not, does not for these functions, or not where an operand is one number.
consteval bool is_narrowest(const char* text) {
  for (const char* p = text; *p; ++p)
    if (*p == '+' || *p == '-' || *p == '*') return false;
  constexpr const char* kNarrowestFunctions = "(abs)(left_shift)(right_shift)(min)(max)(clamp)";
  return calls_any(text, kNarrowestFunctions) && calls_only(text, kNarrowestFunctions);
}

// Whether halves have loops of their own, which compute in float: those of formulas that take no
// longer than the conversion, and of some that are a few vector instructions more.
inline constexpr const char* kHalfFunctions =
    "(sqrt)(rsqrt)(reciprocal)(floor)(ceil)(trunc)(round)(isinf)(isfinite)"
    "(exp)(exp2)(sigmoid)(tanh)(erf)(normal_cdf)(sin)(cos)";
consteval bool suits_halves(const char* text) {
  return count_calls(text, kCheapFunctions, false) == count_calls(text, kHalfFunctions, true);
}
// Whether it does no more than choose between operands by a mask and move signs, for which halves
// are not even converted.
consteval bool moves_bits(const char* text) {
  bool is_negative = text[0] == '-';
  for (const char* p = text + is_negative; *p; ++p)
    if (*p == '-' || *p == '+' || *p == '*' || *p == '/' || *p == '<' || *p == '>' || *p == '=')
      return false;
  return calls_only(text, "(abs)(copysign)(select)") &&
         (is_negative || calls_any(text, "(abs)(copysign)(select)"));
}

// What each instruction set defines under one name, and the host picks from. See ops/op.h.
template <class Table>
using IsaSets = const Table* const[kIsaCount];

}  // namespace rushlight
