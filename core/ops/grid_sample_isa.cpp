// Owns the loops of grid_sample. For some places at once, each tap gets an offset and a weight for
// all channels; what lies outside has the offset -1 and no weight.
#include "core/ops/grid_sample_loops.h"
#include "core/tensor/formula.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int kNearest = 1, kBicubic = 2;                // modes
constexpr int kZeros = 0, kBorder = 1, kReflection = 2;  // paddings
constexpr int64_t kPlaces = kGridPlaces;

// ---- coordinates -------------------------------------------------------------------------------

template <class T>
struct Coordinate {
  T at, slope;  // slope: by the coordinate of the grid
};

template <class T>
[[gnu::always_inline]] inline T bounded(T x, T low, T high) {
  x = x > low ? x : low;  // NaN becomes low
  return x < high ? x : high;
}

// Mirrored at both ends, as often as it takes, and kept inside.
template <class T>
[[gnu::always_inline]] inline Coordinate<T> reflected(T x, T size, bool align_corners) {
  T low = align_corners ? T(0) : T(-0.5), span = align_corners ? size - 1 : size;
  T away = x - low, slope = away < 0 ? T(-1) : T(1);
  away = abs(away);
  T flips = floor(away / (span > 0 ? span : T(1))), rest = away - flips * span;
  bool odd = flips - 2 * floor(flips * T(0.5)) > T(0.5);
  slope = odd ? -slope : slope;
  T at = odd ? span - rest + low : rest + low;
  return {span > 0 ? at : T(0), span > 0 ? slope : T(0)};
}

// Inside the image, with a slope of 0 where it was outside.
template <class T>
[[gnu::always_inline]] inline Coordinate<T> clipped(Coordinate<T> c, T size) {
  bool inside = (c.at > 0) & (c.at < size - 1);
  return {bounded(c.at, T(0), size - 1), inside ? c.slope : T(0)};
}

// Where a coordinate of the grid lies in the image.
template <int padding, class T>
[[gnu::always_inline]] inline Coordinate<T> coordinate(T x, T size, bool align_corners) {
  x = x == x ? x : T(-1);
  T slope = (align_corners ? size - 1 : size) * T(0.5);
  T at = align_corners ? (x + 1) * slope : ((x + 1) * size - 1) * T(0.5);
  if constexpr (padding == kZeros) return {bounded(at, T(-3), size + 2), slope};
  if constexpr (padding == kReflection) {
    Coordinate<T> c = reflected(at, size, align_corners);
    at = c.at;
    slope *= c.slope;
  }
  return clipped(Coordinate<T>{at, slope}, size);
}

// ---- taps --------------------------------------------------------------------------------------

// The taps of some places along a dim.
template <class T>
struct Axis {
  T index[4][kPlaces];  // whole numbers, outside of the image where those count as zero
  T weight[4][kPlaces], slope[4][kPlaces];
};

template <int padding, class T>
void fill_axis(const GridImage& image, int dim, const T* grid, int64_t n, Axis<T>& axis) {
  T size = T(image.sizes[dim]);
  bool align_corners = image.align_corners;
  int dims = image.dims;
  if (image.mode == kBicubic) {
    // The taps are padded, not the coordinate. A coordinate far outside only has to stay finite.
    constexpr T a = T(-0.75);
#pragma omp simd
    for (int64_t p = 0; p < n; ++p) {
      T x = grid[p * dims + dim];
      x = x == x ? x : T(-1);
      T scale = (align_corners ? size - 1 : size) * T(0.5);
      T at = align_corners ? (x + 1) * scale : ((x + 1) * size - 1) * T(0.5);
      if (padding == kZeros) at = bounded(at, T(-3), size + 2);
      at = bounded(at, T(-1e9), T(1e9));
      T first = floor(at), t = at - first, s = 1 - t;
      T index[4] = {first - 1, first, first + 1, first + 2};
      for (int k = 0; k < 4; ++k) {
        if (padding == kReflection) index[k] = reflected(index[k], size, align_corners).at;
        if (padding != kZeros) index[k] = bounded(index[k], T(0), size - 1);
        axis.index[k][p] = index[k];
      }
      T u = t + 1, v = s + 1;
      axis.weight[0][p] = ((u - 5) * u + 8) * u * a - 4 * a;
      axis.weight[1][p] = ((a + 2) * t - (a + 3)) * t * t + 1;
      axis.weight[2][p] = ((a + 2) * s - (a + 3)) * s * s + 1;
      axis.weight[3][p] = ((v - 5) * v + 8) * v * a - 4 * a;
      axis.slope[0][p] = ((3 * u - 10) * u + 8) * a * scale;
      axis.slope[1][p] = (3 * (a + 2) * t - 2 * (a + 3)) * t * scale;
      axis.slope[2][p] = -(3 * (a + 2) * s - 2 * (a + 3)) * s * scale;
      axis.slope[3][p] = -((3 * v - 10) * v + 8) * a * scale;
    }
    return;
  }
  bool nearest = image.mode == kNearest;
#pragma omp simd
  for (int64_t p = 0; p < n; ++p) {
    Coordinate<T> c = coordinate<padding>(grid[p * dims + dim], size, align_corners);
    T first = nearest ? round(c.at) : floor(c.at), t = nearest ? T(0) : c.at - first;
    T slope = nearest ? T(0) : c.slope;
    axis.index[0][p] = first;
    axis.index[1][p] = first + 1;
    axis.weight[0][p] = 1 - t;
    axis.weight[1][p] = t;
    axis.slope[0][p] = -slope;
    axis.slope[1][p] = slope;
  }
}

template <class T>
void fill_axis(const GridImage& image, int dim, const T* grid, int64_t n, Axis<T>& axis) {
  if (image.padding == kZeros) fill_axis<kZeros>(image, dim, grid, n, axis);
  else if (image.padding == kBorder) fill_axis<kBorder>(image, dim, grid, n, axis);
  else fill_axis<kReflection>(image, dim, grid, n, axis);
}

// The taps of some places in the plane, which are all combinations of those along the dims.
template <class T>
struct Taps {
  Axis<T> axes[3];
  int count = 0;
  bool all_inside = true;
  int32_t offset[kGridTaps][kPlaces];
  T weight[kGridTaps][kPlaces];

  void fill(const GridImage& image, const T* grid, int64_t n) {
    for (int d = 0; d < image.dims; ++d) fill_axis(image, d, grid, n, axes[d]);
    int along = image.mode == kNearest ? 1 : image.mode == kBicubic ? 4 : 2;
    count = image.dims == 3 ? along * along * along : along * along;
    all_inside = true;
    for (int tap = 0; tap < count; ++tap) fill_tap(image, tap, along, n);
  }

  // The tap's place among those of a dim.
  static int part(int tap, int dim, int along) {
    for (int d = 0; d < dim; ++d) tap /= along;
    return tap % along;
  }

  void fill_tap(const GridImage& image, int tap, int along, int64_t n) {
    int x = part(tap, 0, along), y = part(tap, 1, along), z = part(tap, 2, along);
    bool volume = image.dims == 3;
    T width = T(image.sizes[0]), height = T(image.sizes[1]), depth = T(image.sizes[2]);
    uint32_t row = uint32_t(image.sizes[0]), plane = uint32_t(image.sizes[0] * image.sizes[1]);
    const Axis<T>& deep = axes[volume ? 2 : 0];
    int outside = 0;
#pragma omp simd reduction(| : outside)
    for (int64_t p = 0; p < n; ++p) {
      T i = axes[0].index[x][p], j = axes[1].index[y][p];
      T w = axes[0].weight[x][p] * axes[1].weight[y][p];
      uint32_t at = uint32_t(int32_t(j)) * row + uint32_t(int32_t(i));
      int inside = (i >= 0) & (i < width) & (j >= 0) & (j < height);
      if (volume) {
        T k = deep.index[z][p];
        w *= deep.weight[z][p];
        at += uint32_t(int32_t(k)) * plane;
        inside &= (k >= 0) & (k < depth);
      }
      offset[tap][p] = inside ? int32_t(at) : -1;
      weight[tap][p] = inside ? w : T(0);
      outside |= !inside;
    }
    if (outside) all_inside = false;
  }

  // The slope of a tap's weight along a dim, without regard to what lies outside.
  void slopes(const GridImage& image, int tap, int dim, int64_t n, T* slope) const {
    int along = image.mode == kNearest ? 1 : image.mode == kBicubic ? 4 : 2;
    for (int d = 0; d < image.dims; ++d) {
      int k = part(tap, d, along);
      const T* factor = d == dim ? axes[d].slope[k] : axes[d].weight[k];
#pragma omp simd
      for (int64_t p = 0; p < n; ++p) slope[p] = d == 0 ? factor[p] : slope[p] * factor[p];
    }
  }
};

template <bool all_inside, class T>
[[gnu::always_inline]] inline T value_at(const T* plane, int32_t offset) {
  if constexpr (all_inside) return plane[offset];
  T x = plane[offset < 0 ? 0 : offset];
  return offset < 0 ? T(0) : x;
}

// ---- the loops ---------------------------------------------------------------------------------

template <int count, bool all_inside, class T>
void sum_taps(const Taps<T>& taps, const T* plane, T* out, int64_t n) {
#pragma omp simd
  for (int64_t p = 0; p < n; ++p) {
    T sum = value_at<all_inside>(plane, taps.offset[0][p]) * taps.weight[0][p];
    for (int k = 1; k < count; ++k)
      sum += value_at<all_inside>(plane, taps.offset[k][p]) * taps.weight[k][p];
    out[p] = sum;
  }
}

template <bool all_inside, class T>
void sum_taps(const Taps<T>& taps, const T* plane, T* out, int64_t n) {
  if (taps.count == 4) sum_taps<4, all_inside>(taps, plane, out, n);
  else if (taps.count == 8) sum_taps<8, all_inside>(taps, plane, out, n);
  else if (taps.count == 16) sum_taps<16, all_inside>(taps, plane, out, n);
  else sum_taps<1, all_inside>(taps, plane, out, n);
}

template <class T>
void sample(const GridImage& image, const void* input, const void* grid, void* output) {
  const T* in = static_cast<const T*>(input);
  const T* places = static_cast<const T*>(grid);
  T* out = static_cast<T*>(output);
  Taps<T> taps;
  for (int64_t first = 0; first < image.places; first += kPlaces) {
    int64_t n = image.places - first < kPlaces ? image.places - first : kPlaces;
    taps.fill(image, places + first * image.dims, n);
    for (int64_t c = 0; c < image.channels; ++c) {
      const T* plane = in + c * image.pixels;
      T* to = out + c * image.places + first;
      if (taps.all_inside) sum_taps<true>(taps, plane, to, n);
      else sum_taps<false>(taps, plane, to, n);
    }
  }
}

// Adds the products of the gradients and what each tap saw, over the channels.
template <bool all_inside, class T>
void add_products(const Taps<T>& taps, const T* plane, const T* g, T (*products)[kPlaces],
                  int64_t n) {
  for (int k = 0; k < taps.count; ++k) {
#pragma omp simd
    for (int64_t p = 0; p < n; ++p)
      products[k][p] += g[p] * value_at<all_inside>(plane, taps.offset[k][p]);
  }
}

template <class T>
void scatter(const Taps<T>& taps, const T* g, T* plane, int64_t n) {
  for (int k = 0; k < taps.count; ++k)
    for (int64_t p = 0; p < n; ++p) {
      int32_t offset = taps.offset[k][p];
      if (offset >= 0) plane[offset] += g[p] * taps.weight[k][p];
    }
}

template <class T>
void backward(const GridImage& image, const void* grad, const void* input, const void* grid,
              void* grad_input, void* grad_grid) {
  const T* in = static_cast<const T*>(input);
  const T* places = static_cast<const T*>(grid);
  Taps<T> taps;
  T products[kGridTaps][kPlaces], slope[kPlaces];
  for (int64_t first = 0; first < image.places; first += kPlaces) {
    int64_t n = image.places - first < kPlaces ? image.places - first : kPlaces;
    taps.fill(image, places + first * image.dims, n);
    __builtin_memset(products, 0, sizeof(products));
    for (int64_t c = 0; c < image.channels; ++c) {
      const T* g = static_cast<const T*>(grad) + c * image.places + first;
      if (grad_input) scatter(taps, g, static_cast<T*>(grad_input) + c * image.pixels, n);
      if (!grad_grid || image.mode == kNearest) continue;
      const T* plane = in + c * image.pixels;
      if (taps.all_inside) add_products<true>(taps, plane, g, products, n);
      else add_products<false>(taps, plane, g, products, n);
    }
    if (!grad_grid) continue;
    T* to = static_cast<T*>(grad_grid) + first * image.dims;
    for (int d = 0; d < image.dims; ++d) {
      for (int64_t p = 0; p < n; ++p) to[p * image.dims + d] = 0;
      for (int k = 0; k < taps.count && image.mode != kNearest; ++k) {
        taps.slopes(image, k, d, n, slope);
        for (int64_t p = 0; p < n; ++p) to[p * image.dims + d] += slope[p] * products[k][p];
      }
    }
  }
}

}  // namespace

extern const GridLoops grid_loops;
constexpr GridLoops grid_loops = {{&sample<float>, &sample<double>},
                                  {&backward<float>, &backward<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
