// Owns where grid_sample looks along one dim of an image: the coordinate that a place of the grid
// has there, and its taps. The same text serves every instruction set and CUDA; formula.h or
// formula.cuh comes before it.
#pragma once

#include "core/ops/grid_sample/grid_args.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

template <class T>
struct Coordinate {
  T at, slope;  // slope: by the coordinate of the grid
};

// n taps along a dim. The indices are whole numbers, outside of the image where those count as 0.
template <class T, int n>
struct GridTaps {
  T index[n], weight[n], slope[n];
};

template <class T>
[[gnu::always_inline]] inline T bounded(T x, T low, T high) {
  x = x > low ? x : low;  // NaN becomes low
  return x < high ? x : high;
}

// Mirrored at both ends, as often as it takes.
template <class T>
[[gnu::always_inline]] inline Coordinate<T> reflected(T x, const GridAxis<T>& axis) {
  T away = abs(x - axis.low), period = axis.span > 0 ? 2 * axis.span : T(1);
  T forth = away - floor(away / period) * period, back = period - forth;
  T slope = x < axis.low ? T(-1) : T(1);
  slope = forth > back ? -slope : slope;
  T at = (forth > back ? back : forth) + axis.low;
  return {axis.span > 0 ? at : T(0), axis.span > 0 ? slope : T(0)};
}

// Inside the image, with a slope of 0 where it was outside.
template <class T>
[[gnu::always_inline]] inline Coordinate<T> clipped(Coordinate<T> c, T size) {
  bool inside = (c.at > 0) & (c.at < size - 1);
  return {bounded(c.at, T(0), size - 1), inside ? c.slope : T(0)};
}

// Where a coordinate of the grid lies in the image, before what the padding does.
template <class T>
[[gnu::always_inline]] inline T placed(T x, const GridAxis<T>& axis) {
  x = x == x ? x : T(-1);
  return (x + axis.shift) * axis.slope + axis.start;
}

// One tap for nearest, two for bilinear.
template <int n, class T>
[[gnu::always_inline]] inline GridTaps<T, n> linear_taps(T x, const GridAxis<T>& axis,
                                                         GridPadding padding) {
  Coordinate<T> c{placed(x, axis), axis.slope};
  if (padding == GridPadding::zeros) {
    c.at = bounded(c.at, T(-3), axis.size + 2);
  } else {
    if (padding == GridPadding::reflection) {
      Coordinate<T> mirrored = reflected(c.at, axis);
      c = {mirrored.at, c.slope * mirrored.slope};
    }
    c = clipped(c, axis.size);
  }
  if constexpr (n == 1) {
    return {{round(c.at)}, {T(1)}, {T(0)}};
  } else {
    T first = floor(c.at), t = c.at - first;
    return {{first, first + 1}, {1 - t, t}, {-c.slope, c.slope}};
  }
}

// Four taps. They are padded, not the coordinate: one far outside only has to stay finite. For the
// weights see cubic_weight in resample_axis.cpp.
template <class T>
[[gnu::always_inline]] inline GridTaps<T, 4> cubic_taps(T x, const GridAxis<T>& axis,
                                                        GridPadding padding) {
  constexpr T a = T(-0.75);
  T at = placed(x, axis), scale = axis.slope;
  if (padding == GridPadding::zeros) at = bounded(at, T(-3), axis.size + 2);
  at = bounded(at, T(-1e9), T(1e9));
  T first = floor(at), t = at - first, s = 1 - t, u = t + 1, v = s + 1;
  GridTaps<T, 4> taps{
      {first - 1, first, first + 1, first + 2},
      {((u - 5) * u + 8) * u * a - 4 * a, ((a + 2) * t - (a + 3)) * t * t + 1,
       ((a + 2) * s - (a + 3)) * s * s + 1, ((v - 5) * v + 8) * v * a - 4 * a},
      {((3 * u - 10) * u + 8) * a * scale, (3 * (a + 2) * t - 2 * (a + 3)) * t * scale,
       -(3 * (a + 2) * s - 2 * (a + 3)) * s * scale, -((3 * v - 10) * v + 8) * a * scale}};
  for (int k = 0; k < 4; ++k) {
    T& index = taps.index[k];
    if (padding == GridPadding::reflection) index = reflected(index, axis).at;
    if (padding != GridPadding::zeros) index = bounded(index, T(0), axis.size - 1);
  }
  return taps;
}

// The taps of a place whose coordinate is x: one for nearest, two for bilinear, four for bicubic.
template <int n, class T>
[[gnu::always_inline]] inline GridTaps<T, n> grid_taps(T x, const GridAxis<T>& axis,
                                                       GridPadding padding) {
  if constexpr (n == 4) return cubic_taps(x, axis, padding);
  else return linear_taps<n>(x, axis, padding);
}

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
