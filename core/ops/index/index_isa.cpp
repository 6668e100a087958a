// Owns the index loops, compiled once per instruction set.
#include "core/ops/index/index_loops.h"
#include "core/tensor/formula.h"

#include "core/tensor/wide_load.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

bool in_range(const int64_t* places, int64_t n, int64_t size) {
  int64_t outside = 0;  // negative if one is
#pragma omp simd reduction(| : outside)
  for (int64_t k = 0; k < n; ++k) outside |= places[k] | (size - 1 - places[k]);
  return outside >= 0;
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

template <bool is_first>
[[gnu::always_inline]] inline bool add_offsets(int64_t* offsets, const int64_t* places,
                                               int64_t step, int64_t n, int64_t size,
                                               int64_t stride) {
  int64_t outside = 0;  // negative if one is
#pragma omp simd reduction(| : outside)
  for (int64_t k = 0; k < n; ++k) {
    int64_t place = places[k * step];
    place += place < 0 ? size : 0;
    outside |= place | (size - 1 - place);
    offsets[k] = (is_first ? 0 : offsets[k]) + place * stride;
  }
  return outside >= 0;
}

bool add_offsets(int64_t* offsets, const int64_t* places, int64_t step, int64_t n, int64_t size,
                 int64_t stride, bool is_first) {
  if (step != 1)
    return is_first ? add_offsets<true>(offsets, places, step, n, size, stride)
                    : add_offsets<false>(offsets, places, step, n, size, stride);
  return is_first ? add_offsets<true>(offsets, places, 1, n, size, stride)
                  : add_offsets<false>(offsets, places, 1, n, size, stride);
}

template <class T>
constexpr bool kIsHalf = detail::kSame<T, Half> || detail::kSame<T, BFloat16>;

template <Scatter how, class T>
void combine(void* to, const void* from, int64_t step, int64_t n) {
  T* out = static_cast<T*>(to);
  if (step == sizeof(T)) {
    const T* in = static_cast<const T*>(from);
    int64_t k = 0;
    if constexpr (how == Scatter::add && kIsHalf<T>)
      for (constexpr int kStep = kWidth<float>; k + 2 * kStep <= n; k += 2 * kStep)
        store_rounded(out + k, load_half(out + k) + load_half(in + k),
                      load_half(out + k + kStep) + load_half(in + k + kStep));
#pragma omp simd
    for (int64_t i = k; i < n; ++i) out[i] = combined<how>(out[i], in[i]);
  } else {
    const char* in = static_cast<const char*>(from);
    for (int64_t k = 0; k < n; ++k, in += step)
      out[k] = combined<how>(out[k], *reinterpret_cast<const T*>(in));
  }
}

// One number met by another, by the instructions of the processor where it has some. They read
// halves into vectors at once: the way through other registers takes longer than the rest.
#if RUSHLIGHT_ISA >= 3
template <Scatter how>
[[gnu::always_inline]] inline void combine_half(Half& to, const Half& from) {
  const __m128i none = _mm_setzero_si128();
  const float a = _mm_cvtph_ps(_mm_insert_epi16(none, to.bits, 0))[0];
  const float b = _mm_cvtph_ps(_mm_insert_epi16(none, from.bits, 0))[0];
  to.bits = uint16_t(_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(combined<how>(a, b)), kNearest), 0));
}
template <Scatter how>
[[gnu::always_inline]] inline void combine_half(BFloat16& to, const BFloat16& from) {
  const __m128i none = _mm_setzero_si128();
  const float a = _mm_castsi128_ps(_mm_insert_epi16(none, to.bits, 1))[0];
  const float b = _mm_castsi128_ps(_mm_insert_epi16(none, from.bits, 1))[0];
  const float met = combined<how>(a, b);
  const __m128i bits = _mm_castps_si128(_mm_set_ss(met));
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
  const __m128i rounded = _mm_add_epi32(_mm_add_epi32(bits, _mm_set1_epi32(0x7fff)), odd);
  if (__builtin_expect(met != met, false)) to = to_bfloat16(met);
  else to.bits = uint16_t(_mm_extract_epi16(rounded, 1));
}
#else
template <Scatter how, class T>
[[gnu::always_inline]] inline void combine_half(T& to, const T& from) {
  to = combined<how>(to, from);
}
#endif

template <Scatter how, class T>
int64_t combine_at(void* to, const int64_t* places, const void* from, AtSteps all_steps, int64_t n,
                   int64_t size) {
  T* out = static_cast<T*>(to);
  const T* in = static_cast<const T*>(from);
  auto loop = [=](AtSteps steps) __attribute__((always_inline)) {
    for (int64_t k = 0; k < n; ++k) {
      int64_t place = places[k * steps.places];
      if (uint64_t(place) >= uint64_t(size)) return k;
      combine_half<how>(out[place * steps.place + k * steps.to], in[k * steps.from]);
    }
    return n;
  };
  constexpr AtSteps kFlat{1, 0, 1, 1};
  return all_steps == kFlat ? loop(kFlat) : loop(all_steps);
}

int64_t count(const uint8_t* flags, int64_t n) {
  int64_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < n; ++k) sum += flags[k] != 0;
  return sum;
}

// Every place is written; only those of true flags stay, so that no jump depends on the data.
void list(const uint8_t* flags, int64_t n, int64_t first, int64_t most, int64_t* to) {
  int64_t at = 0;
  for (int64_t k = 0; k < n && at < most; ++k) {
    to[at] = first + k;
    at += flags[k] != 0;
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

template <Scatter how>
constexpr void set_combine(IndexLoops& loops) {
  constexpr CombineLoop by_dtype[] = {nullptr,
                                      combine<how, uint8_t>,
                                      combine<how, int8_t>,
                                      combine<how, uint16_t>,
                                      combine<how, int16_t>,
                                      combine<how, uint32_t>,
                                      combine<how, int32_t>,
                                      combine<how, uint64_t>,
                                      combine<how, int64_t>,
                                      combine<how, Half>,
                                      combine<how, BFloat16>,
                                      combine<how, float>,
                                      combine<how, double>};
  for (int i = 0; i < kRealTypes; ++i) loops.combine[int(how)][i] = by_dtype[i];
  loops.combine_at[int(how)][0] = combine_at<how, Half>;
  loops.combine_at[int(how)][1] = combine_at<how, BFloat16>;
}

constexpr IndexLoops make_loops() {
  IndexLoops loops{in_range, bounds, add_offsets, {}, {}, count, list, list_between};
  set_combine<Scatter::add>(loops);
  set_combine<Scatter::multiply>(loops);
  set_combine<Scatter::maximum>(loops);
  set_combine<Scatter::minimum>(loops);
  return loops;
}

}  // namespace

extern const IndexLoops index_loops;
constexpr IndexLoops index_loops = make_loops();

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
