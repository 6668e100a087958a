// Defines distances between all pairs of points on the CPU, one point of x1 after the other.
#include <cmath>

#include "core/device/threads.h"
#include "core/ops/distance/distance.h"
#include "core/ops/distance/distance_loops.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(DistanceLoops, distance_loops)

namespace {

constexpr int64_t kGrain = 1 << 15;  // coordinates that are worth a thread

const DistanceLoops& distance_loops() { return active(distance_loops_sets); }

Metric metric_of(double p) {
  return p == 0          ? Metric::zero
         : p == 1        ? Metric::one
         : p == 2        ? Metric::two
         : std::isinf(p) ? Metric::infinity
                         : Metric::power;
}

// The points of a batch with each coordinate of all of them side by side.
Tensor by_coordinate(const Tensor& points) {
  Shape sizes = points.sizes(), strides = points.strides();
  std::swap(sizes[1], sizes[2]);
  std::swap(strides[1], strides[2]);
  return to_contiguous(alias(points, sizes, strides, points.offset()));
}

const char* row(const Tensor& t, int64_t index, int64_t length) {
  return t.data<char>() + index * length * int64_t(t.itemsize());
}

// Calls f(point of x1, the points of its batch, place of its distances).
template <class F>
void for_each_point(const Tensor& x1, const Tensor& x2, F&& f) {
  int64_t points = x1.size(1), features = x1.size(2), others = x2.size(1);
  Tensor turned = by_coordinate(x2);  // (B, M, R)
  parallel_for(0, x1.size(0) * points, kGrain / (features * others + 1) + 1,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   f(i, row(x1, i, features), row(turned, i / points, features * others));
               });
}

}  // namespace

Tensor distances_cpu(const Tensor& x1, const Tensor& x2, double p) {
  int64_t features = x1.size(2), others = x2.size(1);
  Tensor result = empty(Shape{x1.size(0), x1.size(1), others}, x1.dtype());
  auto* loop = distance_loops().from_point[int(metric_of(p))][x1.dtype() == DType::float64];
  for_each_point(x1, x2, [&](int64_t i, const char* point, const char* points) {
    loop(point, points, others, features, others, p, const_cast<char*>(row(result, i, others)));
  });
  return result;
}

Tensor distances_of_rows_cpu(const Tensor& x, double p) {
  int64_t points = x.size(0), features = x.size(1), item = int64_t(x.itemsize());
  Tensor result = empty(Shape{points * (points - 1) / 2}, x.dtype());
  auto* loop = distance_loops().from_point[int(metric_of(p))][x.dtype() == DType::float64];
  Tensor batch = alias(x, Shape{1, points, features},
                       contiguous_strides(Shape{1, points, features}), x.offset());
  for_each_point(batch, batch, [&](int64_t k, const char*, const char* all) {
    // From both ends, so that the threads have equal work: the later rows have fewer behind them.
    int64_t i = k % 2 ? points - 1 - k / 2 : k / 2, before = i * points - i * (i + 1) / 2;
    loop(row(x, i, features), all + (i + 1) * item, points, features, points - i - 1, p,
         result.data<char>() + before * item);
  });
  return result;
}

Tensor distances_grad_cpu(const Tensor& g, const Tensor& x1, const Tensor& x2, double p,
                          const Tensor& distances) {
  int64_t features = x1.size(2), others = x2.size(1);
  Tensor result = empty(x1.sizes(), x1.dtype());
  auto* loop = distance_loops().gradient[int(metric_of(p))][x1.dtype() == DType::float64];
  for_each_point(x1, x2, [&](int64_t i, const char* point, const char* points) {
    loop(point, points, others, features, others, p, row(distances, i, others), row(g, i, others),
         const_cast<char*>(row(result, i, features)));
  });
  return result;
}

}  // namespace rushlight
