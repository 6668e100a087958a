// Defines the draws for the CPU. Random words are made for a few thousand elements at a time and
// turned into numbers while they are in the cache.
#include <algorithm>

#include "core/device/philox.h"
#include "core/device/threads.h"
#include "core/ops/random/random.h"
#include "core/ops/random/random_kernels.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(RandomLoops, random_loops)

namespace {

constexpr int64_t kTileCounters = 512;
constexpr int64_t kTileWords = 4 * kTileCounters;
constexpr int64_t kGrain = 8192;  // counters that are worth a thread

const RandomLoops& loops() { return active(random_loops_sets); }

// Calls f(words, first, n) for tiles that cover a draw of `numel` elements of some words each.
template <class F>
void for_each_tile(Generator::Draw draw, int64_t numel, int64_t words_each, F&& f) {
  int64_t counters = int64_t(philox_counters(uint64_t(numel), uint64_t(words_each)));
  parallel_for(0, counters, kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kTileWords];
    for (int64_t c = begin; c < end; c += kTileCounters) {
      int64_t n = std::min(kTileCounters, end - c), first = c * 4 / words_each;
      loops().words(draw.seed, draw.offset + uint64_t(c), n, words);
      f(words, first, std::min(n * 4 / words_each, numel - first));
    }
  });
}

// Fills `out` with numbers that `make` makes as T, converted to out's dtype.
template <class T>
void fill_as(const Tensor& out, Generator::Draw draw, const DrawArgs& args,
             void (*make)(const uint32_t* words, int64_t n, const DrawArgs& args, T* out)) {
  bool direct = out.dtype() == dtype_of<T>;
  CastLoop convert = cast_loop(dtype_of<T>, out.dtype());
  char* data = out.data<char>();
  int64_t item = int64_t(out.itemsize());
  for_each_tile(draw, out.numel(), sizeof(T) / 4,
                [&](const uint32_t* words, int64_t first, int64_t n) {
                  alignas(64) T tile[kTileWords * 4 / sizeof(T) + 1];
                  // Numbers come in pairs: an odd tile has room for one more, the tensor may have
                  // not.
                  T* to = direct && n % 2 == 0 ? reinterpret_cast<T*>(data) + first : tile;
                  make(words, n, args, to);
                  if (to == tile) convert(tile, data + first * item, n);
                });
}

void make_integers(const uint32_t* words, int64_t n, const DrawArgs& args, int64_t* to) {
  if (args.last <= UINT32_MAX)
    return loops().integers(words, n, int64_t(args.low), args.last + 1, to);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t bits = uint64_t(words[2 * i + 1]) << 32 | words[2 * i];
    unsigned __int128 range = static_cast<unsigned __int128>(args.last) + 1;
    to[i] = int64_t(args.low + uint64_t(range * bits >> 64));
  }
}

}  // namespace

void draw_cpu(const Tensor& out, Distribution distribution, const DrawArgs& args,
              Generator::Draw draw) {
  switch (distribution) {
    case Distribution::uniform_f32: return fill_as<float>(out, draw, args, loops().uniform_f32);
    case Distribution::uniform_f64: return fill_as<double>(out, draw, args, loops().uniform_f64);
    case Distribution::normal_f32: return fill_as<float>(out, draw, args, loops().normal_f32);
    case Distribution::normal_f64: return fill_as<double>(out, draw, args, loops().normal_f64);
    case Distribution::exponential: return fill_as<double>(out, draw, args, loops().exponential);
    case Distribution::geometric: return fill_as<double>(out, draw, args, loops().geometric);
    case Distribution::cauchy: return fill_as<double>(out, draw, args, loops().cauchy);
    case Distribution::log_normal: return fill_as<double>(out, draw, args, loops().log_normal);
    case Distribution::integers: return fill_as<int64_t>(out, draw, args, make_integers);
  }
}

void bernoulli_cpu(const Tensor& out, const Tensor& chances, double all, Generator::Draw draw) {
  const double* p = chances.defined() ? chances.data<double>() : nullptr;
  bool* to = out.data<bool>();
  for_each_tile(draw, out.numel(), 2, [&](const uint32_t* words, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      to[first + i] = uniform_double(words[2 * i], words[2 * i + 1]) < (p ? p[first + i] : all);
  });
}

bool are_chances_cpu(const Tensor& chances) {
  const double* p = chances.data<double>();
  return std::all_of(p, p + chances.numel(), [](double x) { return x >= 0 && x <= 1; });
}

void dropout_cpu(const Tensor& input, const Tensor& out, const Tensor& mask, Dropout dropout,
                 Generator::Draw draw) {
  auto [threshold, scale] = dropout;
  bool* keep = mask.data<bool>();
  for_each_tile(draw, input.numel(), 1, [&](const uint32_t* words, int64_t first, int64_t n) {
    if (input.dtype() == DType::float64) {
      loops().dropout_f64(words, n, threshold, scale, input.data<double>() + first,
                          out.data<double>() + first, keep + first);
    } else if (input.dtype() == DType::float32) {
      loops().dropout_f32(words, n, threshold, float(scale), input.data<float>() + first,
                          out.data<float>() + first, keep + first);
    } else {
      alignas(64) float tile[kTileWords];
      cast_loop(input.dtype(), DType::float32)(
          input.data<char>() + first * int64_t(input.itemsize()), tile, n);
      loops().dropout_f32(words, n, threshold, float(scale), tile, tile, keep + first);
      cast_loop(DType::float32, input.dtype())(
          tile, out.data<char>() + first * int64_t(out.itemsize()), n);
    }
  });
}

}  // namespace rushlight
