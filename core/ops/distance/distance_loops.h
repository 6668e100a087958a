// Owns the shape of the distance loops, which are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Which norm: of 0 the number of elements that differ, of infinity the largest difference.
enum class Metric : uint8_t { zero, one, two, power, infinity };
inline constexpr int kMetricCount = 5;

struct DistanceLoops {
  // The distances of a point with `features` coordinates to n points, whose coordinate k is at
  // points + k * stride. Tables by compute type f32, f64.
  void (*from_point[kMetricCount][2])(const void* point, const void* points, int64_t stride,
                                      int64_t features, int64_t n, double p, void* distances);
  // The gradient of a point from those of its distances: to[k] is the sum of g[j] times the slope
  // of distance j along coordinate k.
  void (*gradient[kMetricCount][2])(const void* point, const void* points, int64_t stride,
                                    int64_t features, int64_t n, double p, const void* distances,
                                    const void* g, void* to);
};

}  // namespace rushlight
