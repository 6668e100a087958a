// Owns the loops that quantize numbers, undo that, and add quantized numbers.
#include "core/ops/quantized/quantized_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Numbers of 32 bits need a double. Comparisons with NaN are false, so that it becomes `low`.
template <class Q, class Wide>
Q within(Wide q, int32_t low, int32_t high) {
  q = q > Wide(low) ? q : Wide(low);
  return Q(int32_t(q < Wide(high) ? q : Wide(high)));
}

// As PyTorch: times the reciprocal, and rounded once the zero point has been added.
template <class Q>
void quantize(const float* input, QuantizedForm form, int32_t low, int32_t high, void* output,
              int64_t n) {
  float inverse = 1.0f / form.scale;
  Q* out = static_cast<Q*>(output);
  if constexpr (sizeof(Q) == 4) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = within<Q>(round(double(input[i] * inverse) + form.zero_point), low, high);
  } else {
    float zero_point = float(form.zero_point);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      out[i] = within<Q>(round(multiply_add(input[i], inverse, zero_point)), low, high);
  }
}

template <class Q>
void dequantize(const void* input, QuantizedForm form, float* output, int64_t n) {
  const Q* in = static_cast<const Q*>(input);
  // The difference of 32-bit numbers wraps around, as PyTorch's does.
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) output[i] = float(int32_t(in[i]) - form.zero_point) * form.scale;
}

// As PyTorch: rounded before the zero point is added.
template <class Q>
void add(const void* a, QuantizedForm a_form, const void* b, QuantizedForm b_form,
         QuantizedForm form, int32_t low, void* output, int64_t n) {
  const Q *left = static_cast<const Q*>(a), *right = static_cast<const Q*>(b);
  Q* out = static_cast<Q*>(output);
  constexpr int32_t kHigh = Q(-1) < Q(0) ? 127 : 255;
  float inverse = 1.0f / form.scale;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    float sum = float(int32_t(left[i]) - a_form.zero_point) * a_form.scale +
                float(int32_t(right[i]) - b_form.zero_point) * b_form.scale;
    out[i] = within<Q>(round(sum * inverse) + float(form.zero_point), low, kHigh);
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
  constexpr int64_t kChunk = 512;
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
    {&dequantize<int8_t>, &dequantize<uint8_t>, &dequantize<int32_t>},
    {&add<int8_t>, &add<uint8_t>},
    &range,
    &dots};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
