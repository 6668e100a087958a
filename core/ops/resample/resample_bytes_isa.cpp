// Owns the loops that resample bytes: weighted sums of rows in vectors of 32-bit numbers. Where the
// elements of a sum stand next to each other, lines are transposed, so that they become rows.
#include "core/ops/resample/resample_loops.h"
#include "core/tensor/vectors.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

extern const LayoutLoops layout_loops;  // core/tensor/layout_isa.cpp

namespace {

// One vector of so many bytes, as numbers of several widths.
template <int bytes>
struct Lanes {
  typedef int32_t Sum __attribute__((vector_size(bytes)));
  typedef uint32_t Word __attribute__((vector_size(bytes)));
  typedef uint16_t Half __attribute__((vector_size(bytes)));
};

// Both halves of each word, below 2^15, times a weight each.
template <int bytes>
[[gnu::always_inline]] inline typename Lanes<bytes>::Sum sum_halves(typename Lanes<bytes>::Word x,
                                                                    const int16_t* weight) {
  using Sum = typename Lanes<bytes>::Sum;
#ifdef __x86_64__
  int32_t pair;
  __builtin_memcpy(&pair, weight, sizeof(pair));
  Sum w = Sum{} + pair;
#if RUSHLIGHT_ISA == 4
  if constexpr (bytes == 64) return Sum(_mm512_madd_epi16(__m512i(x), __m512i(w)));
#endif
#if RUSHLIGHT_ISA >= 3
  if constexpr (bytes == 32) return Sum(_mm256_madd_epi16(__m256i(x), __m256i(w)));
#endif
  if constexpr (bytes == 16) return Sum(_mm_madd_epi16(__m128i(x), __m128i(w)));
#else
  return Sum(x & 0xffff) * weight[0] + Sum(x >> 16) * weight[1];
#endif
}

// The sums of `bytes` bytes, two taps at a time. A vector of sums has every fourth byte, so that
// none changes its lane.
template <int bytes>
[[gnu::always_inline]] inline void sum_block(const uint8_t* in, int64_t n, const int16_t* weight,
                                             int64_t taps, int precision, uint8_t* out) {
  using Sum = typename Lanes<bytes>::Sum;
  using Word = typename Lanes<bytes>::Word;
  using Half = typename Lanes<bytes>::Half;
  Sum sums[4];
#pragma GCC unroll 4
  for (Sum& sum : sums) sum = Sum{} + ((1 << precision) >> 1);
  for (int64_t k = 0; k < taps; k += 2, in += 2 * n) {
    Word a, b;
    __builtin_memcpy(&a, in, sizeof(a));
    __builtin_memcpy(&b, in + n * (k + 1 < taps), sizeof(b));
    Word low = (a & 0xffff) | b << 16, high = a >> 16 | (b & 0xffff0000);
    sums[0] += sum_halves<bytes>(low & 0xff00ff, weight + k);
    sums[1] += sum_halves<bytes>(Word(Half(low) >> 8), weight + k);
    sums[2] += sum_halves<bytes>(high & 0xff00ff, weight + k);
    sums[3] += sum_halves<bytes>(Word(Half(high) >> 8), weight + k);
  }
  Word x{};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    Sum level = sums[i] >> precision;
    level = level < 0 ? Sum{} : level;
    level = level > 255 ? Sum{} + 255 : level;
    x |= Word(level) << (8 * i);
  }
  __builtin_memcpy(out, &x, sizeof(x));
}

// A last block may compute some of the bytes again.
template <int bytes>
[[gnu::always_inline]] inline void sum_blocks(const uint8_t* in, int64_t n, const int16_t* weight,
                                              int64_t taps, int precision, uint8_t* out) {
  int64_t i = 0;
  for (; i + bytes <= n; i += bytes) sum_block<bytes>(in + i, n, weight, taps, precision, out + i);
  if (i < n) sum_block<bytes>(in + n - bytes, n, weight, taps, precision, out + n - bytes);
}

void sum_loop(const ByteWeights& weights, const uint8_t* in, uint8_t* out, int64_t n, int64_t begin,
              int64_t end) {
  for (int64_t o = begin; o < end; ++o, out += n) {
    const ByteOutput& output = weights.output[o];
    const uint8_t* from = in + output.first * n;
    const int16_t* weight = weights.weight + output.at;
    int64_t taps = output.taps;
    if (n >= kVectorBytes) sum_blocks<kVectorBytes>(from, n, weight, taps, weights.precision, out);
    else sum_blocks<kByteLanes>(from, n, weight, taps, weights.precision, out);
  }
}

void lines_loop(const ByteWeights& weights, const uint8_t* in, uint8_t* out, int64_t n,
                int64_t lines, int64_t strip, uint8_t* scratch) {
  int64_t line_in = weights.size * n, line_out = weights.out * n;
  uint8_t *columns = scratch, *sums = scratch + line_in * strip;
  TransposeLoop transpose = layout_loops.transpose[0];
  transpose(reinterpret_cast<const char*>(in), line_in, reinterpret_cast<char*>(columns), strip,
            line_in, lines);
  sum_loop(weights, columns, sums, n * strip, 0, weights.out);
  transpose(reinterpret_cast<const char*>(sums), strip, reinterpret_cast<char*>(out), line_out,
            lines, line_out);
}

}  // namespace

extern const ResampleByteLoops resample_byte_loops;
constexpr ResampleByteLoops resample_byte_loops = {&sum_loop, &lines_loop};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
