// Defines the draws for the CPU. Random words are made for a few thousand elements at a time and
// turned into numbers while they are in the cache.
#include "core/ops/random_draw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/device/philox.h"
#include "core/device/threads.h"
#include "core/ops/random.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa, name) \
  namespace isa {                    \
  extern const RandomLoops name;     \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE, random_loops)
#undef RUSHLIGHT_DECLARE

namespace {

constexpr int64_t kTileCounters = 512;
constexpr int64_t kTileWords = 4 * kTileCounters;
constexpr int64_t kGrain = 8192;  // counters that are worth a thread

const RandomLoops& loops() {
#define RUSHLIGHT_ADDRESS(isa, name) &isa::name,
  static constexpr IsaSets<RandomLoops> sets = {
      RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_ADDRESS, random_loops)};
#undef RUSHLIGHT_ADDRESS
  return active(sets);
}

// Calls f(words, first, n) for tiles that cover a draw of `numel` elements of some words each.
template <class F>
void for_each_tile(Generator* generator, int64_t numel, int64_t words_each, F&& f) {
  int64_t counters = int64_t(philox_counters(uint64_t(numel), uint64_t(words_each)));
  Generator::Draw draw = (generator ? *generator : default_generator()).take(uint64_t(counters));
  parallel_for(0, counters, kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kTileWords];
    for (int64_t c = begin; c < end; c += kTileCounters) {
      int64_t n = std::min(kTileCounters, end - c), first = c * 4 / words_each;
      loops().words(draw.seed, draw.offset + uint64_t(c), n, words);
      f(words, first, std::min(n * 4 / words_each, numel - first));
    }
  });
}

// Fills `out` with numbers that `make(words, n, to)` makes as T, converted to out's dtype.
template <class T, class Make>
void fill_as(const Tensor& out, Generator* generator, Make make) {
  Tensor target = out.is_contiguous() ? out : empty(out.sizes(), out.dtype(), out.device());
  bool direct = out.dtype() == dtype_of<T>;
  CastLoop convert = cast_loop(dtype_of<T>, out.dtype());
  char* data = target.data<char>();
  int64_t item = int64_t(out.itemsize()), words_each = sizeof(T) / 4;
  for_each_tile(generator, out.numel(), words_each,
                [&](const uint32_t* words, int64_t first, int64_t n) {
                  alignas(64) T tile[kTileWords * 4 / sizeof(T) + 1];
                  // Numbers come in pairs: an odd tile has room for one more, the tensor may have
                  // not.
                  T* to = direct && n % 2 == 0 ? reinterpret_cast<T*>(data) + first : tile;
                  make(words, n, to);
                  if (to == tile) convert(tile, data + first * item, n);
                });
  if (!target.is(out)) copy_into(out, target);
}

// The real and imaginary parts of a complex tensor that is written whole, as one real tensor.
template <class Fill>
Tensor fill_parts(const Tensor& out, Fill fill) {
  if (!is_complex(out.dtype())) {
    fill(out);
    return out;
  }
  Tensor target = out.is_contiguous() ? out : empty(out.sizes(), out.dtype(), out.device());
  Tensor parts = shallow_copy(target);
  parts.impl()->dtype = real_dtype(out.dtype());
  parts.impl()->sizes = Shape{2 * out.numel()};
  parts.impl()->strides = Shape{1};
  parts.impl()->offset *= 2;
  parts.impl()->layout_changed();
  fill(parts);
  if (!target.is(out)) copy_into(out, target);
  return out;
}

// How many random bits a uniform number has, so that rounding never makes it 1.
int uniform_bits(DType dtype) {
  return dtype == DType::float16 ? 11 : dtype == DType::bfloat16 ? 8 : 24;
}

}  // namespace

Tensor draw_uniform(const Tensor& out, double from, double to, Generator* generator) {
  return fill_parts(out, [&](const Tensor& parts) {
    CHECK(is_floating(parts.dtype()), ErrorKind::kNotImplemented, "not implemented for ",
          dtype_name(parts.dtype()));
    if (parts.dtype() == DType::float64)
      return fill_as<double>(parts, generator,
                             [&](const uint32_t* words, int64_t n, double* to_tile) {
                               loops().uniform_f64(words, n, from, to - from, to_tile);
                             });
    int bits = uniform_bits(parts.dtype());
    fill_as<float>(parts, generator, [&](const uint32_t* words, int64_t n, float* to_tile) {
      loops().uniform_f32(words, n, bits, float(from), float(to - from), to_tile);
    });
  });
}

Tensor draw_normal(const Tensor& out, double mean, double std, Generator* generator) {
  CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  // A complex normal number of variance 1 has parts of variance 1/2.
  if (is_complex(out.dtype())) std *= std::sqrt(0.5);
  return fill_parts(out, [&](const Tensor& parts) {
    CHECK(is_floating(parts.dtype()), ErrorKind::kNotImplemented, "not implemented for ",
          dtype_name(parts.dtype()));
    if (parts.dtype() == DType::float64)
      return fill_as<double>(parts, generator,
                             [&](const uint32_t* words, int64_t n, double* to_tile) {
                               loops().normal_f64(words, (n + 1) / 2, mean, std, to_tile);
                             });
    fill_as<float>(parts, generator, [&](const uint32_t* words, int64_t n, float* to_tile) {
      loops().normal_f32(words, (n + 1) / 2, float(mean), float(std), to_tile);
    });
  });
}

Tensor draw_exponential(const Tensor& out, double rate, Generator* generator) {
  fill_as<double>(out, generator, [&](const uint32_t* words, int64_t n, double* to_tile) {
    loops().exponential_f64(words, n, rate, to_tile);
  });
  return out;
}

Tensor draw_integers(const Tensor& out, int64_t low, int64_t high, Generator* generator,
                     bool included) {
  CHECK(included ? low <= high : low < high,
        "random expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
  uint64_t last = uint64_t(high) - uint64_t(low) - !included;
  fill_as<int64_t>(out, generator, [&](const uint32_t* words, int64_t n, int64_t* to_tile) {
    if (last <= UINT32_MAX) return loops().integers(words, n, low, last + 1, to_tile);
    for (int64_t i = 0; i < n; ++i) {
      uint64_t bits = uint64_t(words[2 * i + 1]) << 32 | words[2 * i];
      unsigned __int128 range = static_cast<unsigned __int128>(last) + 1;
      to_tile[i] = int64_t(uint64_t(low) + uint64_t(range * bits >> 64));
    }
  });
  return out;
}

Tensor draw_bernoulli(const Tensor& out, const Tensor& chances, Generator* generator) {
  Tensor chance = to_contiguous(to_dtype(chances, DType::float64));
  const double* p = chance.data<double>();
  for (int64_t i = 0; i < chance.numel(); ++i)
    CHECK(p[i] >= 0 && p[i] <= 1, "Expected p_in >= 0 && p_in <= 1, got ", p[i]);
  Tensor ones = empty(out.sizes(), DType::bool_);
  if (chance.numel() != 1 && !(chance.sizes() == out.sizes())) {
    Tensor whole = empty(out.sizes(), DType::float64);
    copy_into(whole, chance);
    chance = whole;
  }
  p = chance.data<double>();
  bool same = chance.numel() == 1;
  bool* to = ones.data<bool>();
  for_each_tile(generator, out.numel(), 2, [&](const uint32_t* words, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      to[first + i] = uniform_double(words[2 * i], words[2 * i + 1]) < p[same ? 0 : first + i];
  });
  copy_into(out, ones);
  return out;
}

// Fisher and Yates: each place in turn is swapped with a random one that is not before it.
Tensor permutation(int64_t n, Generator* generator) {
  Tensor order = empty(Shape{n}, DType::int64), words = empty(Shape{n}, DType::uint64);
  int64_t* at = order.data<int64_t>();
  std::iota(at, at + n, 0);
  uint64_t* random = words.data<uint64_t>();
  for_each_tile(generator, n, 2, [&](const uint32_t* tile, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      random[first + i] = uint64_t(tile[2 * i + 1]) << 32 | tile[2 * i];
  });
  for (int64_t i = 0; i < n; ++i)
    std::swap(at[i],
              at[i + int64_t(static_cast<unsigned __int128>(random[i]) * uint64_t(n - i) >> 64)]);
  return order;
}

Tensor draw_categories(const Tensor& weights, int64_t count, bool replacement,
                       Generator* generator) {
  Tensor table = to_contiguous(to_dtype(weights, DType::float64));
  int64_t columns = weights.size(-1), rows = weights.dim() == 2 ? weights.size(0) : 1;
  Shape sizes = weights.sizes();
  sizes.back() = count;
  Tensor out = empty(sizes, DType::int64);
  // With replacement: the column whose part of the sum holds a random point. Without: the columns
  // whose exponential clocks, as fast as their weight, ring first.
  Tensor random = empty(Shape{rows, replacement ? count : columns}, DType::float64);
  if (replacement) draw_uniform(random, 0, 1, generator);
  else draw_exponential(random, 1, generator);
  parallel_for(0, rows, 4096 / columns + 1, [&](int64_t begin, int64_t end) {
    std::vector<double> key(static_cast<size_t>(columns));
    std::vector<int64_t> order(static_cast<size_t>(columns));
    for (int64_t r = begin; r < end; ++r) {
      const double* weight = table.data<double>() + r * columns;
      const double* drawn = random.data<double>() + r * random.size(1);
      int64_t* to = out.data<int64_t>() + r * count;
      double sum = 0;
      int64_t possible = 0, last = 0;
      for (int64_t c = 0; c < columns; ++c) {
        CHECK(weight[c] >= 0 && std::isfinite(weight[c]),
              "probability tensor contains either `inf`, `nan` or element < 0: ", weight[c],
              " in row ", r);
        sum += weight[c];
        possible += weight[c] > 0;
        if (weight[c] > 0) last = c;
        key[size_t(c)] = replacement ? sum : weight[c] > 0 ? drawn[c] / weight[c] : INFINITY;
      }
      CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0) in row ", r);
      if (replacement) {
        for (int64_t i = 0; i < count; ++i)
          to[i] = std::min(last,
                           std::upper_bound(key.begin(), key.end(), drawn[i] * sum) - key.begin());
        continue;
      }
      CHECK(possible >= count,
            "invalid multinomial distribution (with replacement=False, not enough non-negative "
            "category to sample): ",
            possible, " in row ", r, " for ", count, " samples");
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + count, order.end(),
                        [&](int64_t a, int64_t b) {
                          return std::pair(key[size_t(a)], a) < std::pair(key[size_t(b)], b);
                        });
      std::copy_n(order.begin(), count, to);
    }
  });
  return out;
}

std::pair<Tensor, Tensor> draw_dropout(const Tensor& input, double p, Generator* generator) {
  Tensor source = input.is_dense() ? input : to_contiguous(input);
  Tensor out = empty_strided(source.sizes(), source.strides(), source.dtype(), source.device());
  Tensor mask = empty_strided(source.sizes(), source.strides(), DType::bool_, source.device());
  uint32_t threshold = uint32_t(std::min(p * 0x1p32, 0x1p32 - 1));
  double scale = 1 / (1 - p);
  bool* keep = mask.data<bool>();
  for_each_tile(generator, source.numel(), 1, [&](const uint32_t* words, int64_t first, int64_t n) {
    if (source.dtype() == DType::float64) {
      loops().dropout_f64(words, n, threshold, scale, source.data<double>() + first,
                          out.data<double>() + first, keep + first);
    } else if (source.dtype() == DType::float32) {
      loops().dropout_f32(words, n, threshold, float(scale), source.data<float>() + first,
                          out.data<float>() + first, keep + first);
    } else {
      alignas(64) float tile[kTileWords];
      cast_loop(source.dtype(), DType::float32)(
          source.data<char>() + first * int64_t(source.itemsize()), tile, n);
      loops().dropout_f32(words, n, threshold, float(scale), tile, tile, keep + first);
      cast_loop(DType::float32, source.dtype())(
          tile, out.data<char>() + first * int64_t(out.itemsize()), n);
    }
  });
  return {out, mask};
}

}  // namespace rushlight
