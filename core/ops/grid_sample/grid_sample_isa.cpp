// Owns the loops of grid_sample. For some places at once, each tap gets an offset and a weight for
// all channels; what lies outside has a negative offset.
#include <utility>

#include "core/ops/grid_sample/grid_sample_loops.h"
#include "core/tensor/vectors.h"

#include "core/ops/grid_sample/grid_taps.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int64_t kPlaces = kGridPlaces;

// ---- taps --------------------------------------------------------------------------------------

constexpr int64_t kBlock = 16;
constexpr int32_t kOutside = -(1 << 30);  // an image has fewer pixels

// How an image is sampled, as constants: loops over dims and taps are unrolled.
template <int dims_, int along_, GridPadding padding_>
struct How {
  static constexpr int dims = dims_, along = along_;  // along: taps of a dim
  static constexpr int taps = dims == 3 ? along * along * along : along * along;
  static constexpr GridPadding padding = padding_;

  // Which of those along a dim a tap is made of.
  static constexpr int part(int tap, int dim) {
    for (int d = 0; d < dim; ++d) tap /= along;
    return tap % along;
  }
};

// f(0) to f(n - 1), of constants. A loop would keep the loop around it from being vectorized.
template <int n, class F>
[[gnu::always_inline]] inline void unrolled(F f) {
  [&]<int... k>(std::integer_sequence<int, k...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, k>()), ...);
  }(std::make_integer_sequence<int, n>());
}

template <int dims, int along, class F>
void with_padding(const GridImage& image, F f) {
  switch (image.padding) {
    case GridPadding::zeros: return f(How<dims, along, GridPadding::zeros>());
    case GridPadding::border: return f(How<dims, along, GridPadding::border>());
    case GridPadding::reflection: return f(How<dims, along, GridPadding::reflection>());
  }
}
// Calls f(How()) of the image.
template <class F>
void with_how(const GridImage& image, F f) {
  bool flat = image.dims == 2;
  switch (image.mode) {
    case GridMode::bilinear:
      return flat ? with_padding<2, 2>(image, f) : with_padding<3, 2>(image, f);
    case GridMode::nearest:
      return flat ? with_padding<2, 1>(image, f) : with_padding<3, 1>(image, f);
    case GridMode::bicubic: return with_padding<2, 4>(image, f);
  }
}

// Some places of a grid, dim by dim, filled up to whole blocks.
template <int dims, class T>
struct Places {
  GridAxis<T> axes[dims];
  int64_t count;
  T x[dims][kPlaces];

  Places(const GridImage& image, const T* grid, int64_t n) : count((n + kBlock - 1) & -kBlock) {
    for (int d = 0; d < dims; ++d) axes[d] = GridAxis<T>(T(image.sizes[d]), image.units);
#pragma omp simd
    for (int64_t p = 0; p < n; ++p)
      for (int d = 0; d < dims; ++d) x[d][p] = grid[p * dims + d];
    for (int64_t p = n; p < count; ++p)
      for (int d = 0; d < dims; ++d) x[d][p] = 0;
  }
};

// The taps of some places in the plane, which are all combinations of those along the dims.
template <class T>
struct Taps {
  bool has_pairs = false;  // whether taps 2 k and 2 k + 1 lie side by side
  int32_t signs[kPlaces];  // negative where a tap lies outside
  alignas(64) int32_t offset[kGridTaps][kPlaces];
  int32_t pair[kGridTaps / 2][kPlaces];  // where two taps begin, anywhere if that is outside
  T weight[kGridTaps][kPlaces];

  template <class H>
  void fill(H, const GridImage& image, const T* grid, int64_t n) {
    bool side_by_side = H::along == 2 || (H::along == 4 && H::padding == GridPadding::zeros);
    has_pairs = side_by_side && image.pixels > 1;  // so that any pair can be read
    int32_t sizes[H::dims], strides[H::dims];
    for (int d = 0; d < H::dims; ++d) {
      sizes[d] = int32_t(image.sizes[d]);
      strides[d] = d == 0 ? 1 : strides[d - 1] * sizes[d - 1];
    }
    Places<H::dims, T> places(image, grid, n);
#pragma omp simd
    for (int64_t p = 0; p < places.count; ++p) {
      int32_t at[H::dims][H::along], sign = 0;
      T share[H::dims][H::along];
      unrolled<H::dims>([&](auto d) __attribute__((always_inline)) {
        auto taps = grid_taps<H::along>(places.x[d][p], places.axes[d], H::padding);
        unrolled<H::along>([&](auto k) __attribute__((always_inline)) {
          int32_t index = int32_t(taps.index[k]);
          at[d][k] = uint32_t(index) < uint32_t(sizes[d]) ? index * strides[d] : kOutside;
          share[d][k] = taps.weight[k];
        });
      });
      unrolled<H::taps>([&](auto tap) __attribute__((always_inline)) {
        int32_t to = at[0][H::part(tap, 0)] + at[1][H::part(tap, 1)];
        T w = share[0][H::part(tap, 0)] * share[1][H::part(tap, 1)];
        if constexpr (H::dims == 3) {
          to = (to > kOutside ? to : kOutside) + at[2][H::part(tap, 2)];
          w *= share[2][H::part(tap, 2)];
        }
        offset[tap][p] = to;
        weight[tap][p] = w;
        sign |= to;
        if constexpr (H::along > 1 && tap % 2 == 0) pair[tap / 2][p] = to < 0 ? 0 : to;
      });
      signs[p] = sign;
    }
  }
};

// The gradient of n places of the grid: the sums, over the taps, of the products with the slopes of
// their weights, without regard to what lies outside.
template <class H, class T>
void sum_slopes(H, const GridImage& image, const T* grid, const T (*products)[kPlaces], int64_t n,
                T* out) {
  Places<H::dims, T> places(image, grid, n);
  T sums[H::dims][kPlaces];
#pragma omp simd
  for (int64_t p = 0; p < places.count; ++p) {
    GridTaps<T, H::along> taps[H::dims];
    unrolled<H::dims>([&](auto d) __attribute__((always_inline)) {
      taps[d] = grid_taps<H::along>(places.x[d][p], places.axes[d], H::padding);
    });
    unrolled<H::dims>([&](auto d) __attribute__((always_inline)) {
      T sum = 0;
      unrolled<H::taps>([&](auto tap) __attribute__((always_inline)) {
        T slope = products[tap][p];
        unrolled<H::dims>([&](auto e) __attribute__((always_inline)) {
          constexpr int k = H::part(tap, e);
          slope *= e == d ? taps[e].slope[k] : taps[e].weight[k];
        });
        sum += slope;
      });
      sums[d][p] = sum;
    });
  }
  for (int64_t p = 0; p < n; ++p)
    for (int d = 0; d < H::dims; ++d) out[p * H::dims + d] = sums[d][p];
}

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
  const bool inside = !some(load_vector(taps.signs + p));
  Offsets outside = load_vector(taps.offset[tap] + p) < 0;
  if (!inside && some(outside ^ (load_vector(taps.offset[tap + 1] + p) < 0))) return false;
  const int32_t* at = taps.pair[tap / 2] + p;
  Vector<float> low = pairs_at(plane, at), high = pairs_at(plane, at + kWidth<double>);
  values[0] = every_second<float, 0>(low, high);
  values[1] = every_second<float, 1>(low, high);
  if (inside) return true;
  for (Vector<float>& value : values) value = Vector<float>(Offsets(value) & ~outside);
  return true;
}
#endif

// Calls f(tap, what it sees at the places from p on) for all taps.
template <int count, class T, class F>
[[gnu::always_inline]] inline void for_values(const Taps<T>& taps, const T* plane, int64_t p, F f) {
  if constexpr (count == 1) return f(0, gather(plane, taps.offset[0] + p));
  for (int k = 0; k < count; k += 2) {
    Vector<T> values[2];
    if (!taps.has_pairs || !load_pairs(taps, k, plane, p, values)) {
      values[0] = gather(plane, taps.offset[k] + p);
      values[1] = gather(plane, taps.offset[k + 1] + p);
    }
    f(k, values[0]);
    f(k + 1, values[1]);
  }
}

// ---- the loops ---------------------------------------------------------------------------------

template <int count, class T>
void sum_taps(const Taps<T>& taps, const T* plane, T* out, int64_t n) {
  for (int64_t p = 0; p < n; p += kWidth<T>) {
    Vector<T> sum{};
    for_values<count>(taps, plane, p, [&](int k, Vector<T> values) __attribute__((always_inline)) {
      // The one tap of nearest has the weight 1.
      if constexpr (count == 1) sum = values;
      else sum = multiply_add(values, load_vector(taps.weight[k] + p), sum);
    });
    if (p + kWidth<T> <= n) store_vector(out + p, sum);
    else __builtin_memcpy(out + p, &sum, size_t(n - p) * sizeof(T));
  }
}

template <class T>
void sample(const GridImage& image, const void* input, const void* grid, void* output) {
  const T* in = static_cast<const T*>(input);
  const T* places = static_cast<const T*>(grid);
  T* out = static_cast<T*>(output);
  with_how(image, [&](auto how) {
    Taps<T> taps;
    for (int64_t first = 0; first < image.places; first += kPlaces) {
      int64_t n = image.places - first < kPlaces ? image.places - first : kPlaces;
      taps.fill(how, image, places + first * image.dims, n);
      for (int64_t c = 0; c < image.channels; ++c) {
        const T* plane = in + c * image.pixels;
        sum_taps<how.taps>(taps, plane, out + c * image.places + first, n);
      }
    }
  });
}

// Adds the products of the gradients and what each tap saw, over the channels.
template <int count, class T>
void add_products(const Taps<T>& taps, const T* plane, const T* g, T (*products)[kPlaces],
                  int64_t n) {
  for (int64_t p = 0; p < n; p += kWidth<T>) {
    Vector<T> share{};
    __builtin_memcpy(&share, g + p, size_t(n - p < kWidth<T> ? n - p : kWidth<T>) * sizeof(T));
    for_values<count>(taps, plane, p, [&](int k, Vector<T> values) __attribute__((always_inline)) {
      T* sum = products[k] + p;
      store_vector(sum, multiply_add(share, values, load_vector(sum)));
    });
  }
}

template <int count, class T>
void scatter(const Taps<T>& taps, const T* g, T* plane, int64_t n) {
  T shares[kPlaces];
  for (int k = 0; k < count; ++k) {
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
  with_how(image, [&](auto how) {
    Taps<T> taps;
    T products[kGridTaps][kPlaces];
    for (int64_t first = 0; first < image.places; first += kPlaces) {
      int64_t n = image.places - first < kPlaces ? image.places - first : kPlaces;
      taps.fill(how, image, places + first * image.dims, n);
      __builtin_memset(products, 0, sizeof(products));
      for (int64_t c = 0; c < image.channels; ++c) {
        const T* g = static_cast<const T*>(grad) + c * image.places + first;
        if (grad_input)
          scatter<how.taps>(taps, g, static_cast<T*>(grad_input) + c * image.pixels, n);
        if (!grad_grid || image.mode == GridMode::nearest) continue;
        add_products<how.taps>(taps, in + c * image.pixels, g, products, n);
      }
      if (!grad_grid) continue;
      T* to = static_cast<T*>(grad_grid) + first * image.dims;
      sum_slopes(how, image, places + first * image.dims, products, n, to);
    }
  });
}

}  // namespace

extern const GridLoops grid_loops;
constexpr GridLoops grid_loops = {{&sample<float>, &sample<double>},
                                  {&backward<float>, &backward<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
