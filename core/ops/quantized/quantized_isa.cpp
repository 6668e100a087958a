// Owns the loops that quantize numbers, undo that, and add quantized numbers.
#include "core/ops/quantized/quantized_loops.h"
#include "core/tensor/formula.h"
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Numbers of 32 bits need a double. Comparisons with NaN are false, so that it becomes `low`.
template <class Q, class Wide>
Q within(Wide q, int32_t low, int32_t high) {
  q = q > Wide(low) ? q : Wide(low);
  return Q(int32_t(q < Wide(high) ? q : Wide(high)));
}

// With AVX2 the compiler narrows integers by many shuffles, for which AVX-512 has an instruction.
#if RUSHLIGHT_ISA == 3
constexpr int64_t kTogether = 4 * kWidth<float>;  // numbers that are narrowed together

// The nearest integers from `low` to `high`, halves to even; NaN becomes `low`.
template <class Q>
[[gnu::always_inline]] inline void store_nearest(Q* to, const Vector<float> (&x)[4], int32_t low,
                                                 int32_t high) {
  const Vector<float> least = broadcast(float(low)), most = broadcast(float(high));
  __m256i q[4];
  for (int v = 0; v < 4; ++v) {
    const Vector<float> raised = x[v] > least ? x[v] : least;
    q[v] = _mm256_cvtps_epi32(raised < most ? raised : most);
  }
  const __m256i first = _mm256_packs_epi32(q[0], q[1]), second = _mm256_packs_epi32(q[2], q[3]);
  const __m256i bytes =
      Q(-1) < Q(0) ? _mm256_packs_epi16(first, second) : _mm256_packus_epi16(first, second);
  // Packing happens within the halves of registers.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(bytes, order));
}

// A register of integers of 8 bits, less a number.
template <class Q>
[[gnu::always_inline]] inline Vector<float> load_difference(const Q* from, int32_t subtracted) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  const __m256i wide = Q(-1) < Q(0) ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(wide, _mm256_set1_epi32(subtracted)));
}
#endif

// As PyTorch: times the reciprocal, and rounded once the zero point has been added.
template <class Q>
[[gnu::always_inline]] inline Q quantized(float x, float inverse, int32_t zero_point, int32_t low,
                                          int32_t high) {
  if constexpr (sizeof(Q) == 4)
    return within<Q>(round(double(x * inverse) + zero_point), low, high);
  else return within<Q>(round(multiply_add(x, inverse, float(zero_point))), low, high);
}

template <class Q>
void quantize(const float* input, QuantizedForm form, int32_t low, int32_t high, void* output,
              int64_t n) {
  const float inverse = 1.0f / form.scale;
  Q* out = static_cast<Q*>(output);
  int64_t i = 0;
#if RUSHLIGHT_ISA == 3
  if constexpr (sizeof(Q) == 1) {
    const Vector<float> factor = broadcast(inverse), zero_point = broadcast(float(form.zero_point));
    for (; i + kTogether <= n; i += kTogether) {
      Vector<float> x[4];
      for (int v = 0; v < 4; ++v)
        x[v] = multiply_add(load_vector(input + i + v * kWidth<float>), factor, zero_point);
      store_nearest(out + i, x, low, high);
    }
  }
#endif
#pragma omp simd
  for (int64_t k = i; k < n; ++k)
    out[k] = quantized<Q>(input[k], inverse, form.zero_point, low, high);
}

template <class Q>
void quantize_each(const float* input, const float* scales, const int32_t* zero_points, int32_t low,
                   int32_t high, void* output, int64_t n) {
  Q* out = static_cast<Q*>(output);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    out[i] = quantized<Q>(input[i], 1.0f / scales[i], zero_points[i], low, high);
}

template <class Q>
void dequantize(const void* input, QuantizedForm form, float* output, int64_t n) {
  const Q* in = static_cast<const Q*>(input);
  int64_t i = 0;
#if RUSHLIGHT_ISA == 3
  if constexpr (sizeof(Q) == 1)
    for (; i + kWidth<float> <= n; i += kWidth<float>)
      store_vector(output + i, load_difference(in + i, form.zero_point) * form.scale);
#endif
  // The difference of 32-bit numbers wraps around, as PyTorch's does.
#pragma omp simd
  for (int64_t k = i; k < n; ++k) output[k] = float(int32_t(in[k]) - form.zero_point) * form.scale;
}

template <class Q>
void dequantize_each(const void* input, const float* scales, const int32_t* zero_points,
                     float* output, int64_t n) {
  const Q* in = static_cast<const Q*>(input);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) output[i] = float(int32_t(in[i]) - zero_points[i]) * scales[i];
}

// As PyTorch: rounded before the zero point is added.
template <class Q>
void add(const void* a, QuantizedForm a_form, const void* b, QuantizedForm b_form,
         QuantizedForm form, int32_t low, void* output, int64_t n) {
  const Q *left = static_cast<const Q*>(a), *right = static_cast<const Q*>(b);
  Q* out = static_cast<Q*>(output);
  constexpr int32_t kHigh = Q(-1) < Q(0) ? 127 : 255;
  const float inverse = 1.0f / form.scale, zero_point = float(form.zero_point);
  int64_t i = 0;
#if RUSHLIGHT_ISA == 3
  for (; i + kTogether <= n; i += kTogether) {
    Vector<float> x[4];
    for (int v = 0; v < 4; ++v) {
      const int64_t k = i + v * kWidth<float>;
      const Vector<float> sum = load_difference(left + k, a_form.zero_point) * a_form.scale +
                                load_difference(right + k, b_form.zero_point) * b_form.scale;
      x[v] = _mm256_round_ps(sum * inverse, _MM_FROUND_TO_NEAREST_INT) + zero_point;
    }
    store_nearest(out + i, x, low, kHigh);
  }
#endif
#pragma omp simd
  for (int64_t k = i; k < n; ++k) {
    float sum = float(int32_t(left[k]) - a_form.zero_point) * a_form.scale +
                float(int32_t(right[k]) - b_form.zero_point) * b_form.scale;
    out[k] = within<Q>(round(sum * inverse) + zero_point, low, kHigh);
  }
}

FloatRange range(const float* input, int64_t n) {
  float low = input[0], high = input[0];
#pragma omp simd reduction(min : low) reduction(max : high)
  for (int64_t i = 0; i < n; ++i) {
    low = input[i] < low ? input[i] : low;
    high = input[i] > high ? input[i] : high;
  }
  return {low, high};
}

// The weights are widened once for all rows: for products of numbers of 16 bits, added in pairs,
// all processors have an instruction. GCC finds it where no pragma says how to add.
void dots(const int16_t* input, int64_t rows, const int8_t* const (&weights)[kDotWeights],
          int64_t n, int32_t (*sums)[kDotWeights]) {
  constexpr int64_t kChunk = 1024;
  int16_t wide[kDotWeights][kChunk];
  for (int64_t r = 0; r < rows; ++r)
    for (int k = 0; k < kDotWeights; ++k) sums[r][k] = 0;
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    for (int k = 0; k < kDotWeights; ++k)
#pragma omp simd
      for (int64_t l = 0; l < count; ++l) wide[k][l] = weights[k][i + l];
    for (int64_t r = 0; r < rows; ++r) {
      const int16_t* row = input + r * n + i;
      int32_t a = 0, b = 0, c = 0, d = 0;
      for (int64_t l = 0; l < count; ++l) {
        a += int32_t(row[l]) * int32_t(wide[0][l]);
        b += int32_t(row[l]) * int32_t(wide[1][l]);
        c += int32_t(row[l]) * int32_t(wide[2][l]);
        d += int32_t(row[l]) * int32_t(wide[3][l]);
      }
      sums[r][0] += a, sums[r][1] += b, sums[r][2] += c, sums[r][3] += d;
    }
  }
}

}  // namespace

extern const QuantizedLoops quantized_loops;
constexpr QuantizedLoops quantized_loops = {
    {&quantize<int8_t>, &quantize<uint8_t>, &quantize<int32_t>},
    {&quantize_each<int8_t>, &quantize_each<uint8_t>, &quantize_each<int32_t>},
    {&dequantize<int8_t>, &dequantize<uint8_t>, &dequantize<int32_t>},
    {&dequantize_each<int8_t>, &dequantize_each<uint8_t>, &dequantize_each<int32_t>},
    {&add<int8_t>, &add<uint8_t>},
    &range,
    &dots};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
