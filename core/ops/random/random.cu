// Owns the draws on CUDA: each thread turns one counter into 4 numbers of 32 bits or 2 of 64.
//   DISTRIBUTION   one of the structs below, named as in enum Distribution
//   RESULT         the dtype in memory
// The numbers are those of random_isa.cpp, bit for bit. See Note [Random numbers].
#include "core/tensor/formula.cuh"

// NVRTC has no such builtins; all round correctly.
#define __builtin_sqrtf sqrtf
#define __builtin_sqrt sqrt
#define __builtin_ceil ceil
#include "core/device/normal.h"
#include "core/ops/random/random_args.h"
#include "core/tensor/convert.h"
#include "core/tensor/pack.cuh"

namespace rushlight::on_cuda {

uint64_t wide(uint32_t low, uint32_t high) { return uint64_t(high) << 32 | low; }

struct uniform_f32 {
  using Number = float;
  static void make(Philox4 w, const DrawArgs& args, float* out) {
    float from = float(args.first), width = float(args.second), most = float(args.most);
    const uint32_t words[] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int e = 0; e < 4; ++e)
      out[e] = scaled_uniform(uniform_float(words[e], args.bits), from, width, most);
  }
};

struct uniform_f64 {
  using Number = double;
  static void make(Philox4 w, const DrawArgs& args, double* out) {
    out[0] = scaled_uniform(uniform_double(w.x, w.y), args.first, args.second, args.most);
    out[1] = scaled_uniform(uniform_double(w.z, w.w), args.first, args.second, args.most);
  }
};

struct normal_f32 {
  using Number = float;
  static void make(Philox4 w, const DrawArgs& args, float* out) {
    float mean = float(args.first), std = float(args.second);
    NormalPair<float> low = normal_pair(w.x, w.y), high = normal_pair(w.z, w.w);
    out[0] = low.first * std + mean;
    out[1] = low.second * std + mean;
    out[2] = high.first * std + mean;
    out[3] = high.second * std + mean;
  }
};

struct normal_f64 {
  using Number = double;
  static void make(Philox4 w, const DrawArgs& args, double* out) {
    NormalPair<double> pair = normal_pair(wide(w.x, w.y), wide(w.z, w.w));
    out[0] = pair.first * args.second + args.first;
    out[1] = pair.second * args.second + args.first;
  }
};

// The numbers of two words each, moved off the ends that the dtype would round them to.
template <class Distribution>
struct Limited {
  using Number = double;
  static void make(Philox4 w, const DrawArgs& args, double* out) {
    out[0] = limited(Distribution::number(wide(w.x, w.y), args), args.least, args.most);
    out[1] = limited(Distribution::number(wide(w.z, w.w), args), args.least, args.most);
  }
};

struct exponential : Limited<exponential> {
  static double number(uint64_t bits, const DrawArgs& args) {
    return exponential_number(bits, args.first);
  }
};

struct geometric : Limited<geometric> {
  static double number(uint64_t bits, const DrawArgs& args) {
    return geometric_number(bits, args.first);
  }
};

struct cauchy : Limited<cauchy> {
  static double number(uint64_t bits, const DrawArgs& args) {
    return cauchy_number(bits, args.first, args.second);
  }
};

struct log_normal {
  using Number = double;
  static void make(Philox4 w, const DrawArgs& args, double* out) {
    normal_f64::make(w, args, out);
    out[0] = exp_of(out[0]);
    out[1] = exp_of(out[1]);
  }
};

struct integers {
  using Number = int64_t;
  static void make(Philox4 w, const DrawArgs& args, int64_t* out) {
    out[0] = int64_t(args.low + below(args.last, wide(w.x, w.y)));
    out[1] = int64_t(args.low + below(args.last, wide(w.z, w.w)));
  }
  // The upper half of the product of (last + 1) and the bits, 128 bits wide.
  static uint64_t below(uint64_t last, uint64_t bits) {
    return __umul64hi(last, bits) + (last * bits + bits < bits);
  }
};

using Number = DISTRIBUTION::Number;
constexpr int kEach = 16 / sizeof(Number);  // numbers of a counter

using Results = Pack<RESULT, kEach>;

extern "C" __global__ void draw(DrawPlace place, DrawArgs args) {
  int64_t counter = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, first = counter * kEach;
  if (first >= place.numel) return;
  Number numbers[kEach];
  DISTRIBUTION::make(place.draw.words(uint64_t(counter)), args, numbers);
  RESULT* out = static_cast<RESULT*>(place.out) + first;
  if (first + kEach <= place.numel && reinterpret_cast<uint64_t>(out) % sizeof(Results) == 0) {
    Results results;
#pragma unroll
    for (int e = 0; e < kEach; ++e) results.at[e] = convert<RESULT>(numbers[e]);
    *reinterpret_cast<Results*>(out) = results;
    return;
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e)
    if (first + e < place.numel) out[e] = convert<RESULT>(numbers[e]);
}

}  // namespace rushlight::on_cuda
