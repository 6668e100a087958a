// Owns the FFT kernel of CUDA, compiled for REAL, float or double: a block takes a few lines into
// shared memory, runs all passes there in Stockham's order, and writes them once. Longer transforms
// are split into lines by fft_cuda.cpp.
#include "core/tensor/formula.cuh"

#include "core/ops/fft/fft_args.h"

namespace rushlight::on_cuda {

template <class T>
using Vector = T;
template <class T>
inline T broadcast(T x) {
  return x;
}

}  // namespace rushlight::on_cuda

#include "core/ops/fft/fft_radix.h"

namespace rushlight::on_cuda {

using Number = Lanes<REAL>;

// exp(-2 pi i turn / turns), 0 <= turn < turns.
inline Number root(int64_t turn, int64_t turns) {
  // Between -1 and 1, where a float has the most digits.
  double half_turns = 2.0 * double(2 * turn > turns ? turn - turns : turn) / double(turns);
#if REAL_IS_FLOAT
  return {::cospif(float(half_turns)), -::sinpif(float(half_turns))};
#else
  return {::cospi(half_turns), -::sinpi(half_turns)};
#endif
}

struct Line {
  int64_t in, out, middle;
};
inline Line line_at(const FftArgs& args, int64_t index) {
  int64_t c = index % args.inner, rest = index / args.inner;
  int64_t b = rest % args.middle, a = rest / args.middle;
  return {a * args.in.outer + b * args.in.middle + c, a * args.out.outer + b * args.out.middle + c,
          b};
}

// One pass over `count` lines of n numbers, as in fft_isa.cpp: m * R * s = n.
template <int R>
void pass(const Number* from, Number* to, int n, int count, int m, int s) {
  int butterflies = n / R;
  for (int t = int(threadIdx.x); t < count * butterflies; t += kFftThreads) {
    int at = t / butterflies * n, q = t % butterflies % s, p = t % butterflies / s;
    Number x[R];
#pragma unroll
    for (int j = 0; j < R; ++j) x[j] = from[at + q + s * (p + m * j)];
    Dft<R>::run(x);
#pragma unroll
    for (int j = 0; j < R; ++j)
      to[at + q + s * (R * p + j)] = j == 0 || p == 0 ? x[j] : x[j] * root(p * j, m * R);
  }
}

// The same for any odd r.
inline void odd_pass(const Number* from, Number* to, int n, int count, int m, int s, int r,
                     const REAL* turns) {
  int butterflies = n / r;
  for (int t = int(threadIdx.x); t < count * butterflies; t += kFftThreads) {
    int at = t / butterflies * n, q = t % butterflies % s, p = t % butterflies / s;
    Number x[kFftLargestRadix];
    for (int j = 0; j < r; ++j) x[j] = from[at + q + s * (p + m * j)];
    odd_dft<kFftLargestRadix>(r, x, turns);
    for (int j = 0; j < r; ++j) to[at + q + s * (r * p + j)] = x[j] * root(p * j, m * r);
  }
}

}  // namespace rushlight::on_cuda

using namespace rushlight;
using namespace rushlight::on_cuda;

extern "C" __global__ void __launch_bounds__(kFftThreads) fft_lines(FftArgs args) {
  extern __shared__ Number pairs[];
  __shared__ REAL turns[2 * kFftLargestRadix];
  const Number* input = static_cast<const Number*>(args.input);
  Number* output = static_cast<Number*>(args.output);
  int64_t first = int64_t(blockIdx.x) * args.lines_per_block;
  int count = int(min(int64_t(args.lines_per_block), args.lines - first)), n = args.n;
  Number *here = pairs, *there = pairs + args.lines_per_block * n;

  for (int t = int(threadIdx.x); t < count * n; t += kFftThreads) {
    int line = args.loads_lines ? t / n : t % count, j = args.loads_lines ? t % n : t / count;
    Number x = input[line_at(args, first + line).in + j * args.in.step];
    here[line * n + j] = args.swap_in ? Number{x.im, x.re} : x;
  }
  int s = 1;
  for (int i = 0; i < args.passes; ++i) {
    int r = args.radix[i], m = n / (s * r);
    if (r > 8)
      for (int k = int(threadIdx.x); k < r; k += kFftThreads) {
        Number turn = root(k, r);
        turns[k] = turn.re;
        turns[r + k] = -turn.im;
      }
    __syncthreads();
    switch (r) {
      case 2: pass<2>(here, there, n, count, m, s); break;
      case 3: pass<3>(here, there, n, count, m, s); break;
      case 4: pass<4>(here, there, n, count, m, s); break;
      case 5: pass<5>(here, there, n, count, m, s); break;
      case 7: pass<7>(here, there, n, count, m, s); break;
      case 8: pass<8>(here, there, n, count, m, s); break;
      default: odd_pass(here, there, n, count, m, s, r, turns);
    }
    Number* swap = here;
    here = there;
    there = swap;
    s *= r;
    __syncthreads();  // the next pass may write new turns
  }
  for (int t = int(threadIdx.x); t < count * n; t += kFftThreads) {
    int line = args.stores_lines ? t / n : t % count, k = args.stores_lines ? t % n : t / count;
    Line place = line_at(args, first + line);
    Number x = here[line * n + k];
    if (args.turns) x = x * root(place.middle * k % args.turns, args.turns);
    x = x * REAL(args.scale);
    output[place.out + k * args.out.step] = args.swap_out ? Number{x.im, x.re} : x;
  }
}
