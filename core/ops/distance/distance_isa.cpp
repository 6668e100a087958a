// Owns the distance loops, compiled once per instruction set. They run over the points, whose
// coordinates lie side by side, so that points of a few coordinates are as fast as others.
#include "core/ops/distance/distance_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int64_t kWidth = 64;  // points that are in work at once,
constexpr int64_t kRest = 16;   // those of the rest,
constexpr int64_t kFew = 4;     // and of a rest that is smaller

template <Metric metric, class T>
[[gnu::always_inline]] inline T extend(T sum, T gap, T p) {
  if constexpr (metric == Metric::zero) return sum + (gap != gap ? gap : gap != T(0) ? T(1) : T(0));
  else if constexpr (metric == Metric::one) return sum + gap;
  else if constexpr (metric == Metric::two) return multiply_add(gap, gap, sum);
  else if constexpr (metric == Metric::power) return sum + pow(gap, p);
  else return gap > sum || gap != gap ? gap : sum;  // NaN wins
}

template <Metric metric, class T>
[[gnu::always_inline]] inline T finish(T sum, T p) {
  if constexpr (metric == Metric::two) return sqrt(sum);
  else if constexpr (metric == Metric::power) return pow(sum, T(1) / p);
  else return sum;
}

template <Metric metric, class T>
void from_point(const void* point, const void* points, int64_t stride, int64_t features, int64_t n,
                double p, void* distances) {
  const T *x = static_cast<const T*>(point), *y = static_cast<const T*>(points);
  T *out = static_cast<T*>(distances), power = T(p);
  auto take = [=](int64_t j, int64_t width) __attribute__((always_inline)) {
    T sums[kWidth] = {};
    for (int64_t k = 0; k < features; ++k) {
      const T* at = y + k * stride + j;
      T own = x[k];
#pragma omp simd
      for (int64_t i = 0; i < width; ++i)
        sums[i] = extend<metric>(sums[i], abs(own - at[i]), power);
    }
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[j + i] = finish<metric>(sums[i], power);
  };
  int64_t j = 0;
  for (; j + kWidth <= n; j += kWidth) take(j, kWidth);
  for (; j + kRest <= n; j += kRest) take(j, kRest);
  if (j < n && n >= kRest) return take(n - kRest, kRest);  // some of them once more
  for (; j + kFew <= n; j += kFew) take(j, kFew);
  for (; j < n; ++j) take(j, 1);
}

// d distance / d x_k = sign(x_k - y_k) (|x_k - y_k| / distance)^(p - 1), and 0 at distance 0.
template <Metric metric, class T>
[[gnu::always_inline]] inline T slope(T gap, T distance, T p) {
  T magnitude = abs(gap), sign = gap > T(0) ? T(1) : gap < T(0) ? T(-1) : T(0);
  if constexpr (metric == Metric::zero) return T(0);
  else if constexpr (metric == Metric::one) return sign;
  else if constexpr (metric == Metric::two) return distance == T(0) ? T(0) : gap / distance;
  else if constexpr (metric == Metric::infinity) return magnitude == distance ? sign : T(0);
  else
    return distance == T(0) || magnitude == T(0) ? T(0)
                                                 : sign * pow(magnitude / distance, p - T(1));
}

template <Metric metric, class T>
void gradient(const void* point, const void* points, int64_t stride, int64_t features, int64_t n,
              double p, const void* distances, const void* g, void* to) {
  const T *x = static_cast<const T*>(point), *y = static_cast<const T*>(points),
          *distance = static_cast<const T*>(distances), *weight = static_cast<const T*>(g);
  T *out = static_cast<T*>(to), power = T(p);
  for (int64_t k = 0; k < features; ++k) {
    const T* at = y + k * stride;
    T own = x[k], sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j)
      sum += weight[j] * slope<metric>(own - at[j], distance[j], power);
    out[k] = sum;
  }
}

}  // namespace

#define RUSHLIGHT_METRICS(f)                                                       \
  {                                                                                \
    {f<Metric::zero, float>, f<Metric::zero, double>},                             \
        {f<Metric::one, float>, f<Metric::one, double>},                           \
        {f<Metric::two, float>, f<Metric::two, double>},                           \
        {f<Metric::power, float>, f<Metric::power, double>},                       \
        {f<Metric::infinity, float>, f<Metric::infinity, double>},                 \
  }
extern const DistanceLoops distance_loops;
constexpr DistanceLoops distance_loops = {RUSHLIGHT_METRICS(from_point),
                                          RUSHLIGHT_METRICS(gradient)};
#undef RUSHLIGHT_METRICS

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
