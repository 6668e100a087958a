// Owns the index loops, compiled once per instruction set.
#include "core/base/half.h"
#include "core/ops/index/index_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

bool in_range(const int64_t* places, int64_t n, int64_t size) {
  bool outside = false;
#pragma omp simd reduction(| : outside)
  for (int64_t k = 0; k < n; ++k) outside |= uint64_t(places[k]) >= uint64_t(size);
  return !outside;
}

void bounds(const int64_t* numbers, int64_t n, int64_t* least, int64_t* greatest) {
  int64_t low = numbers[0], high = numbers[0];
#pragma omp simd reduction(min : low) reduction(max : high)
  for (int64_t k = 0; k < n; ++k) {
    low = numbers[k] < low ? numbers[k] : low;
    high = numbers[k] > high ? numbers[k] : high;
  }
  *least = low;
  *greatest = high;
}

struct Item16 {
  uint64_t low, high;
};

template <class T>
void take(const void* from, int64_t stride, int64_t step, const int64_t* places, int64_t n,
          void* to) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  if (step == 0 && stride == 1) {
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) out[k] = in[places[k]];
  } else {
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) out[k] = in[places[k] * stride + k * step];
  }
}

template <class T>
[[gnu::always_inline]] inline T sum(T a, T b) {
  if constexpr (detail::kSame<T, Half>) return to_half(to_float(a) + to_float(b));
  else if constexpr (detail::kSame<T, BFloat16>) return to_bfloat16(to_float(a) + to_float(b));
  else if constexpr (detail::kSame<T, bool>) return a | b;
  else if constexpr (T(0.5f) == T(0)) return T(uint64_t(a) + uint64_t(b));  // integers wrap
  else return a + b;
}

template <class T>
void add(void* to, const void* from, int64_t n) {
  T* out = static_cast<T*>(to);
  const T* in = static_cast<const T*>(from);
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) out[k] = sum(out[k], in[k]);
}

template <class T, T (*extreme)(T, T)>
void keep_extreme(void* to, const void* from, int64_t n) {
  T* out = static_cast<T*>(to);
  const T* in = static_cast<const T*>(from);
#pragma omp simd
  for (int64_t k = 0; k < n; ++k) out[k] = extreme(out[k], in[k]);
}

int64_t count(const bool* flags, int64_t n) {
  int64_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < n; ++k) sum += flags[k];
  return sum;
}

// Every place is written; only those of true flags stay, so that no jump depends on the data.
void list(const bool* flags, int64_t n, int64_t first, int64_t most, int64_t* to) {
  int64_t at = 0;
  for (int64_t k = 0; k < n && at < most; ++k) {
    to[at] = first + k;
    at += flags[k];
  }
}

int64_t list_between(const int64_t* values, int64_t n, int64_t low, uint64_t width, int64_t* to) {
  int64_t at = 0;
  for (int64_t k = 0; k < n; ++k) {
    to[at] = k;
    at += uint64_t(values[k]) - uint64_t(low) < width;
  }
  return at;
}

}  // namespace

extern const IndexLoops index_loops;
constexpr IndexLoops index_loops = {
    in_range,
    bounds,
    {take<uint8_t>, take<uint16_t>, take<uint32_t>, take<uint64_t>, take<Item16>},
    {add<bool>, add<uint8_t>, add<int8_t>, add<uint16_t>, add<int16_t>, add<uint32_t>, add<int32_t>,
     add<uint64_t>, add<int64_t>, add<Half>, add<BFloat16>, add<float>, add<double>},
    {keep_extreme<float, max>, keep_extreme<double, max>},
    {keep_extreme<float, min>, keep_extreme<double, min>},
    count,
    list,
    list_between};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
