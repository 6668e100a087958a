// Owns the loops of grid_sample. For some places at once, each tap gets an offset and a weight for
// all channels; what lies outside has a negative offset.
#include "core/ops/grid_sample/grid_sample_loops.h"
#include "core/tensor/vectors.h"

#include "core/ops/grid_sample/grid_taps.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int64_t kPlaces = kGridPlaces;

// ---- taps --------------------------------------------------------------------------------------

constexpr int64_t kBlock = 16;
constexpr int32_t kOutside = -(1 << 30);  // an image has fewer pixels

// Calls f(place) for whole vectors of places, so that their number is known to the compiler.
template <class F>
[[gnu::always_inline]] inline void for_places(int64_t n, F f) {
  for (int64_t first = 0; first < n; first += kBlock)
#pragma omp simd
    for (int64_t p = first; p < first + kBlock; ++p) f(p);
}

// The taps of some places along a dim.
template <class T>
struct Axis {
  int32_t offset[4][kPlaces];  // kOutside where what lies outside counts as zero
  T weight[4][kPlaces], slope[4][kPlaces];
};

template <int taps, GridPadding padding, class T>
void fill_axis(const GridImage& image, int dim, const T* x, int64_t n, Axis<T>& axis) {
  int32_t size = int32_t(image.sizes[dim]), stride = 1;
  for (int d = 0; d < dim; ++d) stride *= int32_t(image.sizes[d]);
  GridUnits units = image.units;
  for_places(n, [&](int64_t p) __attribute__((always_inline)) {
    GridTaps<T, taps> at = grid_taps<taps>(x[p], T(size), padding, units);
    for (int k = 0; k < taps; ++k) {
      int32_t index = int32_t(at.index[k]);
      axis.offset[k][p] = uint32_t(index) < uint32_t(size) ? index * stride : kOutside;
      axis.weight[k][p] = at.weight[k];
      axis.slope[k][p] = at.slope[k];
    }
  });
}

template <GridPadding padding, class T>
void fill_axis(const GridImage& image, int dim, const T* x, int64_t n, Axis<T>& axis) {
  switch (image.mode) {
    case GridMode::bilinear: return fill_axis<2, padding>(image, dim, x, n, axis);
    case GridMode::nearest: return fill_axis<1, padding>(image, dim, x, n, axis);
    default: return fill_axis<4, padding>(image, dim, x, n, axis);
  }
}

template <class T>
void fill_axis(const GridImage& image, int dim, const T* x, int64_t n, Axis<T>& axis) {
  switch (image.padding) {
    case GridPadding::zeros: return fill_axis<GridPadding::zeros>(image, dim, x, n, axis);
    case GridPadding::border: return fill_axis<GridPadding::border>(image, dim, x, n, axis);
    default: return fill_axis<GridPadding::reflection>(image, dim, x, n, axis);
  }
}

// The coordinates of n places, dim by dim.
template <int dims, class T>
void part_coordinates(const T* grid, int64_t n, T (*parted)[kPlaces]) {
#pragma omp simd
  for (int64_t p = 0; p < n; ++p)
    for (int d = 0; d < dims; ++d) parted[d][p] = grid[p * dims + d];
}

// The taps of some places in the plane, which are all combinations of those along the dims.
template <class T>
struct Taps {
  Axis<T> axes[3];
  int count = 0;
  bool has_pairs = false;  // whether taps 2 k and 2 k + 1 lie side by side
  int32_t offset[kGridTaps][kPlaces];
  int32_t pair[kGridTaps / 2][kPlaces];  // where two taps begin, anywhere if that is outside
  T weight[kGridTaps][kPlaces];

  // Places are filled up to whole vectors.
  void fill(const GridImage& image, const T* grid, int64_t n) {
    T coordinates[3][kPlaces];
    if (image.dims == 2) part_coordinates<2>(grid, n, coordinates);
    else part_coordinates<3>(grid, n, coordinates);
    for (; n % kBlock != 0; ++n)
      for (int d = 0; d < image.dims; ++d) coordinates[d][n] = 0;
    for (int d = 0; d < image.dims; ++d) fill_axis(image, d, coordinates[d], n, axes[d]);
    int along = image.mode == GridMode::nearest ? 1 : image.mode == GridMode::bicubic ? 4 : 2;
    count = image.dims == 3 ? along * along * along : along * along;
    bool side_by_side = along == 2 || (along == 4 && image.padding == GridPadding::zeros);
    has_pairs = side_by_side && image.pixels > 1;  // so that any pair can be read
    for (int tap = 0; tap < count; ++tap) fill_tap(image, tap, along, n);
    for (int tap = 0; tap < count * has_pairs; tap += 2)
      for_places(n, [&](int64_t p) __attribute__((always_inline)) {
        pair[tap / 2][p] = offset[tap][p] < 0 ? 0 : offset[tap][p];
      });
  }

  // The tap's place among those of a dim.
  static int part(int tap, int dim, int along) {
    for (int d = 0; d < dim; ++d) tap /= along;
    return tap % along;
  }

  void fill_tap(const GridImage& image, int tap, int along, int64_t n) {
    int32_t* to = offset[tap];
    T* w = weight[tap];
    const Axis<T>* axis = axes;
    int x = part(tap, 0, along), y = part(tap, 1, along), z = part(tap, 2, along);
    for_places(n, [&](int64_t p) __attribute__((always_inline)) {
      to[p] = axis[0].offset[x][p] + axis[1].offset[y][p];
      w[p] = axis[0].weight[x][p] * axis[1].weight[y][p];
    });
    if (image.dims == 2) return;
    for_places(n, [&](int64_t p) __attribute__((always_inline)) {
      to[p] = (to[p] > kOutside ? to[p] : kOutside) + axis[2].offset[z][p];
      w[p] *= axis[2].weight[z][p];
    });
  }

  // The slope of a tap's weight along a dim, without regard to what lies outside.
  void slopes(const GridImage& image, int tap, int dim, int64_t n, T* slope) const {
    int along = image.mode == GridMode::nearest ? 1 : image.mode == GridMode::bicubic ? 4 : 2;
    for (int d = 0; d < image.dims; ++d) {
      int k = part(tap, d, along);
      const T* factor = d == dim ? axes[d].slope[k] : axes[d].weight[k];
#pragma omp simd
      for (int64_t p = 0; p < n; ++p) slope[p] = d == 0 ? factor[p] : slope[p] * factor[p];
    }
  }
};

// plane[offset[0]], plane[offset[1]], ..., and 0 for negative offsets.
#if RUSHLIGHT_ISA == 4
[[gnu::always_inline]] inline Vector<float> gather(const float* plane, const int32_t* offset) {
  __m512i at = _mm512_loadu_si512(offset);
  __mmask16 inside = _mm512_cmpge_epi32_mask(at, _mm512_setzero_si512());
  return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, at, plane, 4);
}
[[gnu::always_inline]] inline Vector<double> gather(const double* plane, const int32_t* offset) {
  __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(offset));
  __mmask8 inside = _mm256_cmpge_epi32_mask(at, _mm256_setzero_si256());
  return _mm512_mask_i32gather_pd(_mm512_setzero_pd(), inside, at, plane, 8);
}
#elif RUSHLIGHT_ISA == 3
[[gnu::always_inline]] inline Vector<float> gather(const float* plane, const int32_t* offset) {
  __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(offset));
  __m256i inside = _mm256_cmpgt_epi32(at, _mm256_set1_epi32(-1));
  return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), plane, at, _mm256_castsi256_ps(inside), 4);
}
[[gnu::always_inline]] inline Vector<double> gather(const double* plane, const int32_t* offset) {
  __m128i at = _mm_loadu_si128(reinterpret_cast<const __m128i*>(offset));
  __m256i inside = _mm256_cvtepi32_epi64(_mm_cmpgt_epi32(at, _mm_set1_epi32(-1)));
  return _mm256_mask_i32gather_pd(_mm256_setzero_pd(), plane, at, _mm256_castsi256_pd(inside), 8);
}
#else
template <class T>
[[gnu::always_inline]] inline Vector<T> gather(const T* plane, const int32_t* offset) {
  Vector<T> values{};
  for (int i = 0; i < kWidth<T>; ++i)
    if (offset[i] >= 0) values[i] = plane[offset[i]];
  return values;
}
#endif

// The values at two offsets each that lie side by side, of which one load brings both: these loads
// take less time than the instructions that gather. False where only one of the two lies outside.
template <class T>
[[gnu::always_inline]] inline bool load_pairs(const Taps<T>&, int, const T*, int64_t,
                                              Vector<T> (&)[2]) {
  return false;
}
#if RUSHLIGHT_ISA >= 3
// Whether some lanes are negative.
[[gnu::always_inline]] inline bool some(Vector<int32_t> lanes) {
#if RUSHLIGHT_ISA == 4
  return _mm512_movepi32_mask(__m512i(lanes)) != 0;
#else
  return _mm256_movemask_ps(__m256(lanes)) != 0;
#endif
}
// In this order: all offsets first would not fit into the registers.
[[gnu::always_inline]] inline __m128d load_2_pairs(const float* plane, const int32_t* offset) {
  using Pair [[gnu::aligned(4), gnu::may_alias]] = double;  // only moved
  __m128d pairs = {*reinterpret_cast<const Pair*>(plane + offset[0]),
                   *reinterpret_cast<const Pair*>(plane + offset[1])};
  asm volatile("" : "+x"(pairs));
  return pairs;
}
[[gnu::always_inline]] inline __m256d load_4_pairs(const float* plane, const int32_t* offset) {
  return _mm256_set_m128d(load_2_pairs(plane, offset + 2), load_2_pairs(plane, offset));
}
[[gnu::always_inline]] inline Vector<float> pairs_at(const float* plane, const int32_t* offset) {
#if RUSHLIGHT_ISA == 4
  __m512d low = _mm512_castpd256_pd512(load_4_pairs(plane, offset));
  return Vector<float>(
      _mm512_maskz_insertf64x4(__mmask8(-1), low, load_4_pairs(plane, offset + 4), 1));
#else
  return Vector<float>(load_4_pairs(plane, offset));
#endif
}
template <>
[[gnu::always_inline]] inline bool load_pairs(const Taps<float>& taps, int tap, const float* plane,
                                              int64_t p, Vector<float> (&values)[2]) {
  using Offsets = Vector<int32_t>;
  Offsets outside = load_vector(taps.offset[tap] + p) < 0;
  if (some(outside ^ (load_vector(taps.offset[tap + 1] + p) < 0))) return false;
  const int32_t* at = taps.pair[tap / 2] + p;
  Vector<float> low = pairs_at(plane, at), high = pairs_at(plane, at + kWidth<double>);
  values[0] = Vector<float>(Offsets(every_second<float, 0>(low, high)) & ~outside);
  values[1] = Vector<float>(Offsets(every_second<float, 1>(low, high)) & ~outside);
  return true;
}
#endif

// Calls f(tap, what it sees at the places from p on) for all taps; without a loop for `bilinear`,
// which says that they are two pairs.
template <bool bilinear = false, class T, class F>
[[gnu::always_inline]] inline void for_values(const Taps<T>& taps, const T* plane, int64_t p, F f) {
  const bool pairs = bilinear || taps.has_pairs;
  for (int k = 0; k < (bilinear ? 4 : taps.count); k += 1 + pairs) {
    Vector<T> values[2];
    if (pairs) {
      if (!load_pairs(taps, k, plane, p, values)) {
        values[0] = gather(plane, taps.offset[k] + p);
        values[1] = gather(plane, taps.offset[k + 1] + p);
      }
      f(k, values[0]);
      f(k + 1, values[1]);
    } else {
      f(k, gather(plane, taps.offset[k] + p));
    }
  }
}

// ---- the loops ---------------------------------------------------------------------------------

template <bool bilinear, class T>
void sum_taps(const Taps<T>& taps, const T* plane, T* out, int64_t n) {
  for (int64_t p = 0; p < n; p += kWidth<T>) {
    Vector<T> sum{};
    auto add = [&](int k, Vector<T> values) __attribute__((always_inline)) {
      sum = multiply_add(values, load_vector(taps.weight[k] + p), sum);
    };
    for_values<bilinear>(taps, plane, p, add);
    if (p + kWidth<T> <= n) store_vector(out + p, sum);
    else __builtin_memcpy(out + p, &sum, size_t(n - p) * sizeof(T));
  }
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
      if (taps.has_pairs && taps.count == 4) sum_taps<true>(taps, plane, to, n);
      else sum_taps<false>(taps, plane, to, n);
    }
  }
}

// Adds the products of the gradients and what each tap saw, over the channels.
template <class T>
void add_products(const Taps<T>& taps, const T* plane, const T* g, T (*products)[kPlaces],
                  int64_t n) {
  for (int64_t p = 0; p < n; p += kWidth<T>) {
    Vector<T> share{};
    __builtin_memcpy(&share, g + p, size_t(n - p < kWidth<T> ? n - p : kWidth<T>) * sizeof(T));
    for_values(taps, plane, p, [&](int k, Vector<T> values) __attribute__((always_inline)) {
      T* sum = products[k] + p;
      store_vector(sum, multiply_add(share, values, load_vector(sum)));
    });
  }
}

template <class T>
void scatter(const Taps<T>& taps, const T* g, T* plane, int64_t n) {
  T shares[kPlaces];
  for (int k = 0; k < taps.count; ++k) {
    const int32_t* offset = taps.offset[k];
#pragma omp simd
    for (int64_t p = 0; p < n; ++p) shares[p] = g[p] * taps.weight[k][p];
    for (int64_t p = 0; p < n; ++p)
      if (offset[p] >= 0) plane[offset[p]] += shares[p];
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
      if (!grad_grid || image.mode == GridMode::nearest) continue;
      const T* plane = in + c * image.pixels;
      add_products(taps, plane, g, products, n);
    }
    if (!grad_grid) continue;
    T* to = static_cast<T*>(grad_grid) + first * image.dims;
    for (int d = 0; d < image.dims; ++d) {
      T sum[kPlaces] = {};
      for (int k = 0; k < taps.count && image.mode != GridMode::nearest; ++k) {
        taps.slopes(image, k, d, n, slope);
#pragma omp simd
        for (int64_t p = 0; p < n; ++p) sum[p] += slope[p] * products[k][p];
      }
      for (int64_t p = 0; p < n; ++p) to[p * image.dims + d] = sum[p];
    }
  }
}

}  // namespace

extern const GridLoops grid_loops;
constexpr GridLoops grid_loops = {{&sample<float>, &sample<double>},
                                  {&backward<float>, &backward<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
