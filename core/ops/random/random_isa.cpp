// Owns the random loops, compiled once per instruction set.
#include "core/device/normal.h"
#include "core/ops/random/random.h"
#include "core/tensor/formula.h"

#ifdef __aarch64__
#include <arm_neon.h>
#endif

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

#if RUSHLIGHT_ISA == 0
constexpr int kLanes = 2;
#elif RUSHLIGHT_ISA == 3
constexpr int kLanes = 4;
#else
constexpr int kLanes = 8;
#endif
typedef uint64_t Words __attribute__((vector_size(8 * kLanes)));

// GCC knows no vector type of 32-bit factors with a 64-bit product, the processor does. A lambda,
// because a call through a function pointer is inlined only at higher optimization levels.
constexpr auto multiply = [](Words words, uint32_t factor) __attribute__((always_inline)) {
  [[maybe_unused]] Words factors = Words{} + factor;
#if defined(__clang__)
  return (words & 0xffffffff) * factors;
#elif RUSHLIGHT_ISA == 4
  typedef int Halves __attribute__((vector_size(64)));
  typedef long long Whole __attribute__((vector_size(64)));
  return Words(__builtin_ia32_pmuludq512_mask(Halves(words), Halves(factors), Whole{}, 0xff));
#elif RUSHLIGHT_ISA == 3
  typedef int Halves __attribute__((vector_size(32)));
  return Words(__builtin_ia32_pmuludq256(Halves(words), Halves(factors)));
#elif defined(__x86_64__)
  typedef int Halves __attribute__((vector_size(16)));
  return Words(__builtin_ia32_pmuludq128(Halves(words), Halves(factors)));
#elif defined(__aarch64__)
  return Words(vmull_n_u32(vmovn_u64(uint64x2_t(words)), factor));
#else
  return (words & 0xffffffff) * factors;
#endif
};

template <size_t... I>
[[gnu::always_inline]] inline void store_pairs(Words first, Words second, void* out,
                                               detail::Indices<I...>) {
  Words low = __builtin_shufflevector(first, second, (int(I) / 2 + (I % 2 ? kLanes : 0))...);
  Words high =
      __builtin_shufflevector(first, second, ((kLanes + int(I)) / 2 + (I % 2 ? kLanes : 0))...);
  __builtin_memcpy(out, &low, sizeof(low));
  __builtin_memcpy(static_cast<char*>(out) + sizeof(low), &high, sizeof(high));
}

template <size_t... I>
[[gnu::always_inline]] inline Words count_from(uint64_t counter, detail::Indices<I...>) {
  return Words{counter + I...};
}

void make_words(uint64_t seed, uint64_t counter, int64_t counters, uint32_t* out) {
  using Lanes = detail::IndicesTo<size_t(kLanes)>;
  PhiloxKey key{uint32_t(seed), uint32_t(seed >> 32)};
  int64_t i = 0;
  for (; i + kLanes <= counters; i += kLanes) {
    Words x = count_from(counter + uint64_t(i), Lanes{}), y = x >> 32, z{}, w{};
    philox_rounds(x, y, z, w, key, multiply);
    store_pairs((x & 0xffffffff) | y << 32, (z & 0xffffffff) | w << 32, out + 4 * i, Lanes{});
  }
  for (; i < counters; ++i) {
    Philox4 four = philox(seed, counter + uint64_t(i));
    out[4 * i] = four.x;
    out[4 * i + 1] = four.y;
    out[4 * i + 2] = four.z;
    out[4 * i + 3] = four.w;
  }
}

void uniform_f32(const uint32_t* words, int64_t n, const DrawArgs& args, float* out) {
  float from = float(args.first), width = float(args.second), most = float(args.most);
  int bits = args.bits;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    out[i] = scaled_uniform(uniform_float(words[i], bits), from, width, most);
}

void uniform_f64(const uint32_t* words, int64_t n, const DrawArgs& args, double* out) {
  double from = args.first, width = args.second, most = args.most;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    out[i] = scaled_uniform(uniform_double(words[2 * i], words[2 * i + 1]), from, width, most);
}

void normal_f32(const uint32_t* words, int64_t n, const DrawArgs& args, float* out) {
  float mean = float(args.first), std = float(args.second);
#pragma omp simd
  for (int64_t i = 0; i < (n + 1) / 2; ++i) {
    NormalPair<float> pair = normal_pair(words[2 * i], words[2 * i + 1]);
    out[2 * i] = pair.first * std + mean;
    out[2 * i + 1] = pair.second * std + mean;
  }
}

[[gnu::always_inline]] inline uint64_t wide(const uint32_t* words) {
  return uint64_t(words[1]) << 32 | words[0];
}

void normal_f64(const uint32_t* words, int64_t n, const DrawArgs& args, double* out) {
  double mean = args.first, std = args.second;
#pragma omp simd
  for (int64_t i = 0; i < (n + 1) / 2; ++i) {
    NormalPair<double> pair = normal_pair(wide(words + 4 * i), wide(words + 4 * i + 2));
    out[2 * i] = pair.first * std + mean;
    out[2 * i + 1] = pair.second * std + mean;
  }
}

void log_normal(const uint32_t* words, int64_t n, const DrawArgs& args, double* out) {
  normal_f64(words, n, args, out);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = exp_of(out[i]);
}

void exponential(const uint32_t* words, int64_t n, const DrawArgs& args, double* out) {
  double rate = args.first, least = args.least, most = args.most;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    out[i] = limited(exponential_number(wide(words + 2 * i), rate), least, most);
}

void geometric(const uint32_t* words, int64_t n, const DrawArgs& args, double* out) {
  double rate = args.first, least = args.least, most = args.most;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    out[i] = limited(geometric_number(wide(words + 2 * i), rate), least, most);
}

void cauchy(const uint32_t* words, int64_t n, const DrawArgs& args, double* out) {
  double median = args.first, sigma = args.second, least = args.least, most = args.most;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    out[i] = limited(cauchy_number(wide(words + 2 * i), median, sigma), least, most);
}

// The upper half of the product of 64 random bits and the range: even to one part in 2^32 at least.
void integers(const uint32_t* words, int64_t n, int64_t low, uint64_t range, int64_t* out) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    uint64_t below = uint64_t(words[2 * i]) * uint32_t(range - 1) + words[2 * i];
    uint64_t above = uint64_t(words[2 * i + 1]) * uint32_t(range - 1) + words[2 * i + 1];
    out[i] = int64_t(uint64_t(low) + ((above + (below >> 32)) >> 32));
  }
}

template <class T>
void dropout(const uint32_t* words, int64_t n, uint32_t threshold, T scale, const T* in, T* out,
             bool* keep) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    bool kept = words[i] >= threshold;
    keep[i] = kept;
    out[i] = kept ? in[i] * scale : T(0);
  }
}

}  // namespace

extern const RandomLoops random_loops;
constexpr RandomLoops random_loops = {make_words, uniform_f32, uniform_f64,    normal_f32,
                                      normal_f64, exponential, geometric,      cauchy,
                                      log_normal, integers,    dropout<float>, dropout<double>};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
