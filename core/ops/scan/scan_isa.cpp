// Owns the inner loops of running sums. Four elements are added up among themselves before what
// came before them is added, so that they do not wait for each other; the order of the additions is
// the same on all processors.
#include "core/ops/scan/scan_loops.h"
#include "core/tensor/lanes.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int kLanes = 4;
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double))));

template <bool reverse>
[[gnu::always_inline]] inline Floats in_order(Floats v) {
  if constexpr (reverse) return __builtin_shufflevector(v, v, 3, 2, 1, 0);
  return v;
}

// (v0, v0 + v1, v0 + v1 + v2, v0 + v1 + v2 + v3) of the elements in the order of the scan.
template <bool reverse>
[[gnu::always_inline]] inline Doubles running(const float* x) {
  Floats loaded;
  __builtin_memcpy(&loaded, x, sizeof(loaded));
  Doubles v = __builtin_convertvector(in_order<reverse>(loaded), Doubles);
  v += __builtin_shufflevector(Doubles{}, v, 0, 4, 5, 6);
  v += __builtin_shufflevector(Doubles{}, v, 0, 1, 4, 5);
  return v;
}

template <bool reverse>
[[gnu::always_inline]] inline void store(float* y, Doubles v) {
  Floats rounded = in_order<reverse>(__builtin_convertvector(v, Floats));
  __builtin_memcpy(y, &rounded, sizeof(rounded));
}

template <bool reverse>
double running_sum(const float* x, float* y, int64_t n, double start) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    int64_t first = reverse ? n - kLanes - i : i, second = reverse ? first - kLanes : i + kLanes;
    Doubles a = running<reverse>(x + first), b = running<reverse>(x + second);
    store<reverse>(y + first, a + start);
    start += a[kLanes - 1];
    store<reverse>(y + second, b + start);
    start += b[kLanes - 1];
  }
  for (; i < n; ++i) {
    int64_t at = reverse ? n - 1 - i : i;
    start += double(x[at]);
    y[at] = float(start);
  }
  return start;
}

double sum_of(const float* x, int64_t n) {
  return sum<double>(n, [=](int64_t i) { return double(x[i]); });
}

}  // namespace

extern const ScanLoops scan_loops;
constexpr ScanLoops scan_loops = {sum_of, {running_sum<false>, running_sum<true>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
