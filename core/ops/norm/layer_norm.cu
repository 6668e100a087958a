// Owns layer_norm on CUDA, and its gradient; rms_norm, whose `mean` is null. Macros say which:
//   INPUT           the dtype of input, output and their gradients
//   WEIGHT          that of weight and bias, which may be null
//   COMPUTE, CHUNK  see row.cuh
#include "core/ops/columns.cuh"

namespace rushlight::on_cuda {

// A row and how its threads share it; see merged() for `team`. Teams past the last row have n = 0.
struct Row {
  int64_t index, start, n;
  int rank, team;

  Row(int64_t rows, int64_t length, int threads)
      : index((int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / threads),
        start(index < rows ? index * length : 0),
        n(index < rows ? length : 0),
        rank(int(threadIdx.x % threads)),
        team(threads) {}
};

template <bool vectors>
Chunk<Compute> numbers(const Walk<vectors>& walk, const WEIGHT* values, int64_t chunk,
                       Compute missing) {
  Chunk<WEIGHT> loaded{};
  if (values) loaded = walk.load(values, chunk).elements();
  Chunk<Compute> out;
#pragma unroll
  for (int e = 0; e < kChunk; ++e) out.at[e] = values ? convert<Compute>(loaded.at[e]) : missing;
  return out;
}

template <bool vectors>
void normalize(const Row& row, const INPUT* input, const WEIGHT* weight, const WEIGHT* bias,
               double eps, INPUT* output, Compute* mean_out, Compute* rstd_out) {
  Walk<vectors> walk{row.n, row.rank, row.team};
  const INPUT* x = input + row.start;
  auto load = [&](int64_t chunk) { return walk.load(x, chunk); };
  ChunkWords<INPUT> kept[kKept];
  walk.keep(kept, load);
  auto sum = [&](auto&& f) {
    Sums own = Sums::none();
    walk.for_each(kept, load, [&](int64_t chunk, const ChunkWords<INPUT>& loaded) {
      Chunk<INPUT> x = loaded.elements();
#pragma unroll
      for (int e = 0; e < kChunk; ++e)
        if (walk.has(chunk, e)) own.first += f(convert<Compute>(x.at[e]));
    });
    return merged(own, row.team).first;
  };
  Compute count = Compute(row.n), mean = 0;
  if (mean_out) mean = sum([](Compute value) { return value; }) / count;
  Compute squares = sum([=](Compute value) { return (value - mean) * (value - mean); });
  Compute rstd = 1 / sqrt(squares / count + Compute(eps));
  if (row.n > 0 && row.rank == 0) {
    if (mean_out) mean_out[row.index] = mean;
    rstd_out[row.index] = rstd;
  }
  walk.for_each(kept, load, [&](int64_t chunk, const ChunkWords<INPUT>& loaded) {
    Chunk<INPUT> x = loaded.elements();
    Chunk<Compute> w = numbers(walk, weight, chunk, 1), b = numbers(walk, bias, chunk, 0);
    Chunk<INPUT> results;
#pragma unroll
    for (int e = 0; e < kChunk; ++e)
      results.at[e] = convert<INPUT>((convert<Compute>(x.at[e]) - mean) * rstd * w.at[e] + b.at[e]);
    walk.store(output + row.start, chunk, results);
  });
}

extern "C" __global__ void __launch_bounds__(kRowThreads)
    forward(const INPUT* input, const WEIGHT* weight, const WEIGHT* bias, double eps, INPUT* output,
            Compute* mean, Compute* rstd, int64_t rows, int64_t n, int team, bool vectors) {
  Row row(rows, n, team);
  if (vectors) normalize<true>(row, input, weight, bias, eps, output, mean, rstd);
  else normalize<false>(row, input, weight, bias, eps, output, mean, rstd);
}

// grad_input = rstd (h - mean(h) - z mean(h z)) with h = grad weight and z = (input - mean) rstd,
// where mean(h) is there for a mean that is the input's (centered).
template <bool vectors>
void differentiate(const Row& row, const INPUT* grad, const INPUT* input, const WEIGHT* weight,
                   Compute mean, Compute rstd, bool centered, INPUT* grad_input) {
  struct Loaded {
    ChunkWords<INPUT> grad, input;
  };
  Walk<vectors> walk{row.n, row.rank, row.team};
  auto load = [&](int64_t chunk) {
    return Loaded{walk.load(grad + row.start, chunk), walk.load(input + row.start, chunk)};
  };
  Loaded kept[kKept];
  walk.keep(kept, load);
  // Calls f(h, z, chunk, element in it) for all elements, and done(chunk) after each chunk.
  auto for_each = [&](auto&& f, auto&& done) {
    walk.for_each(kept, load, [&](int64_t chunk, const Loaded& loaded) {
      Chunk<INPUT> g = loaded.grad.elements(), x = loaded.input.elements();
      Chunk<Compute> w = numbers(walk, weight, chunk, 1);
#pragma unroll
      for (int e = 0; e < kChunk; ++e)
        if (walk.has(chunk, e))
          f(convert<Compute>(g.at[e]) * w.at[e], (convert<Compute>(x.at[e]) - mean) * rstd, e);
      done(chunk);
    });
  };
  Sums own = Sums::none();
  for_each(
      [&](Compute h, Compute z, int) {
        own.first += h;
        own.second += h * z;
      },
      [](int64_t) {});
  Sums all = merged(own, row.team);
  Compute mean_h = centered ? all.first / Compute(row.n) : 0, mean_hz = all.second / Compute(row.n);
  Chunk<INPUT> results;
  for_each([&](Compute h, Compute z,
               int e) { results.at[e] = convert<INPUT>(rstd * (h - mean_h - z * mean_hz)); },
           [&](int64_t chunk) { walk.store(grad_input + row.start, chunk, results); });
}

extern "C" __global__ void __launch_bounds__(kRowThreads)
    backward(const INPUT* grad, const INPUT* input, const WEIGHT* weight, const Compute* mean,
             const Compute* rstd, INPUT* grad_input, int64_t rows, int64_t n, int team,
             bool vectors) {
  Row row(rows, n, team);
  Compute m = 0, r = 0;
  if (row.n > 0) {
    if (mean) m = mean[row.index];
    r = rstd[row.index];
  }
  if (vectors) differentiate<true>(row, grad, input, weight, m, r, mean != nullptr, grad_input);
  else differentiate<false>(row, grad, input, weight, m, r, mean != nullptr, grad_input);
}

// The gradients of weight and bias: sums down the rows, in pieces and then over these.
extern "C" __global__ void __launch_bounds__(kDownThreads)
    sum_pieces(const INPUT* grad, const INPUT* input, const Compute* mean, const Compute* rstd,
               Sums* pieces, int64_t rows, int64_t n, int64_t rows_of_piece) {
  Sums own = Sums::none();
  if (own_column() < n)
    for_own_rows(rows, rows_of_piece, [&](int64_t row) {
      int64_t at = row * n + own_column();
      Compute g = convert<Compute>(grad[at]);
      Compute distance = convert<Compute>(input[at]) - (mean ? mean[row] : Compute(0));
      own.first += g * (distance * rstd[row]);
      own.second += g;
    });
  write_piece(own, pieces, n);
}
// Either result may be null.
extern "C" __global__ void __launch_bounds__(kDownThreads)
    merge_pieces(const Sums* pieces, int64_t count, Compute* grad_weight, Compute* grad_bias,
                 int64_t n) {
  Sums all = merged_pieces(pieces, count, n);
  if (threadIdx.y != 0 || own_column() >= n) return;
  if (grad_weight) grad_weight[own_column()] = all.first;
  if (grad_bias) grad_bias[own_column()] = all.second;
}

}  // namespace rushlight::on_cuda
