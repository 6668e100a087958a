// Owns batch_norm on CUDA, and its gradient. The input is (outer, channels, inner); inner is 1 for
// channels_last memory, whose channels are columns. Statistics are taken in pieces, then merged by
// channel into the numbers that the last kernel applies to each element. Macros say which dtypes:
//   INPUT           that of input, output and their gradients
//   COMPUTE, CHUNK  see row.cuh; parameters and statistics are in COMPUTE
#include "core/ops/columns.cuh"

namespace rushlight::on_cuda {

// The elements that a thread saw. Its first one is subtracted from all: so the squares keep their
// digits however far the mean is from zero, without a division for each element.
struct MomentsOfInput {
  using State = Moments;

  const INPUT* input;
  Compute shift = 0, sum = 0, squares = 0, count = 0;

  template <int width>
  void add(int64_t at, int64_t) {
    auto values = *reinterpret_cast<const Chunk<INPUT, width>*>(input + at);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      Compute value = convert<Compute>(values.at[e]);
      if (count == 0) shift = value;
      Compute difference = value - shift;
      sum += difference;
      squares += difference * difference;
      count += 1;
    }
  }
  Moments state() const {
    if (count == 0) return Moments::none();
    Compute mean = sum / count, rest = squares - sum * mean;
    return {count, shift + mean, rest < 0 ? Compute(0) : rest};
  }
};

// The sums of grad, and of grad * (input - mean).
struct SumsOfGrad {
  using State = Sums;

  const INPUT* grad;
  const INPUT* input;
  const Compute* mean;
  Sums sums = Sums::none();

  template <int width>
  void add(int64_t at, int64_t channel) {
    auto g = *reinterpret_cast<const Chunk<INPUT, width>*>(grad + at);
    auto x = *reinterpret_cast<const Chunk<INPUT, width>*>(input + at);
    Compute m = mean[channel];
#pragma unroll
    for (int e = 0; e < width; ++e) {
      Compute value = convert<Compute>(g.at[e]);
      sums.first += value;
      sums.second += value * (convert<Compute>(x.at[e]) - m);
    }
  }
  Sums state() const { return sums; }
};

// A block takes a piece of one channel: blockIdx is (channel, piece). `length` counts units of
// `width` elements.
template <int width, class Source>
void take_planes(Source source, typename Source::State* pieces, int64_t outer, int64_t channels,
                 int64_t inner, int64_t length) {
  int64_t channel = blockIdx.x, units = inner / width, total = outer * units;
  int64_t first = blockIdx.y * length, end = total - first < length ? total : first + length;
  int64_t unit = first + threadIdx.x, o = unit / units, i = unit % units;
  int64_t step_o = blockDim.x / units, step_i = blockDim.x % units;
#pragma unroll 4
  for (; unit < end; unit += blockDim.x) {
    source.template add<width>((o * channels + channel) * inner + i * width, channel);
    o += step_o;
    i += step_i;
    if (i >= units) {
      i -= units;
      ++o;
    }
  }
  auto all = merged(source.state(), int(blockDim.x));
  if (threadIdx.x == 0) pieces[blockIdx.y * channels + channel] = all;
}
template <class Source>
void take_columns(Source source, typename Source::State* pieces, int64_t rows, int64_t channels,
                  int64_t rows_of_piece) {
  if (own_column() < channels)
    for_own_rows(rows, rows_of_piece, [&](int64_t row) {
      source.template add<1>(row * channels + own_column(), own_column());
    });
  write_piece(source.state(), pieces, channels);
}

extern "C" __global__ void __launch_bounds__(kRowThreads)
    moments_of_planes(const INPUT* input, Moments* pieces, int64_t outer, int64_t channels,
                      int64_t inner, int64_t length, bool vectors) {
  MomentsOfInput source{input};
  if (vectors) take_planes<kChunk>(source, pieces, outer, channels, inner, length);
  else take_planes<1>(source, pieces, outer, channels, inner, length);
}
extern "C" __global__ void __launch_bounds__(kDownThreads)
    moments_of_columns(const INPUT* input, Moments* pieces, int64_t rows, int64_t channels,
                       int64_t rows_of_piece) {
  take_columns(MomentsOfInput{input}, pieces, rows, channels, rows_of_piece);
}
extern "C" __global__ void __launch_bounds__(kRowThreads)
    sums_of_planes(const INPUT* grad, const INPUT* input, const Compute* mean, Sums* pieces,
                   int64_t outer, int64_t channels, int64_t inner, int64_t length, bool vectors) {
  SumsOfGrad source{grad, input, mean};
  if (vectors) take_planes<kChunk>(source, pieces, outer, channels, inner, length);
  else take_planes<1>(source, pieces, outer, channels, inner, length);
}
extern "C" __global__ void __launch_bounds__(kDownThreads)
    sums_of_columns(const INPUT* grad, const INPUT* input, const Compute* mean, Sums* pieces,
                    int64_t rows, int64_t channels, int64_t rows_of_piece) {
  take_columns(SumsOfGrad{grad, input, mean}, pieces, rows, channels, rows_of_piece);
}

// What a channel does to its elements: a grad + b (input - mean) + c, without grad in the forward
// pass.
struct Change {
  Compute mean, a, b, c;
};

// In training, statistics come from the pieces, and the running ones (null if there are none) move
// towards them by momentum; else there are no pieces, and the running ones serve.
extern "C" __global__ void __launch_bounds__(kDownThreads)
    prepare_forward(const Moments* pieces, int64_t count, int64_t channels, const Compute* weight,
                    const Compute* bias, Compute* running_mean, Compute* running_var,
                    double momentum, double eps, Compute* mean_out, Compute* rstd_out,
                    Change* changes) {
  Moments all = merged_pieces(pieces, count, channels);
  int64_t c = own_column();
  if (threadIdx.y != 0 || c >= channels) return;
  Compute mean, var;
  if (count > 0) {
    mean = all.mean;
    var = all.squares / all.count;
    Compute moved = Compute(momentum), kept = Compute(1 - momentum);
    if (running_mean) running_mean[c] = kept * running_mean[c] + moved * mean;
    if (running_var)
      running_var[c] = kept * running_var[c] + moved * (all.squares / (all.count - 1));
  } else {
    mean = running_mean[c];
    var = running_var[c];
  }
  Compute rstd = 1 / sqrt(var + Compute(eps));
  mean_out[c] = mean;
  rstd_out[c] = rstd;
  changes[c] = {mean, 0, weight ? rstd * weight[c] : rstd, bias ? bias[c] : Compute(0)};
}

// `elements` are those of a channel, 0 where the statistics did not come from the input.
extern "C" __global__ void __launch_bounds__(kDownThreads)
    prepare_backward(const Sums* pieces, int64_t count, int64_t channels, const Compute* mean,
                     const Compute* rstd, const Compute* weight, int64_t elements,
                     Compute* grad_weight, Compute* grad_bias, Change* changes) {
  Sums all = merged_pieces(pieces, count, channels);
  int64_t c = own_column();
  if (threadIdx.y != 0 || c >= channels) return;
  Compute r = rstd[c], scale = weight ? r * weight[c] : r;
  grad_weight[c] = all.second * r;
  grad_bias[c] = all.first;
  changes[c] = {mean[c], scale, 0, 0};
  if (elements > 0) {
    changes[c].b = -scale * r * r * (all.second / Compute(elements));
    changes[c].c = -scale * (all.first / Compute(elements));
  }
}

// Index is as narrow as the number of elements allows, because divisions of 64 bits are slow.
template <int width, class Index>
void change(const INPUT* grad, const INPUT* input, const Change* changes, INPUT* output,
            int64_t numel, int64_t channels, int64_t inner) {
  int64_t at = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * width;
  if (at >= numel) return;
  auto x = *reinterpret_cast<const Chunk<INPUT, width>*>(input + at);
  Chunk<INPUT, width> g, y;
  if (grad) g = *reinterpret_cast<const Chunk<INPUT, width>*>(grad + at);
  Index channel = Index(at) / Index(inner) % Index(channels);
  Change own = changes[channel];
#pragma unroll
  for (int e = 0; e < width; ++e) {
    if (e > 0 && inner == 1) own = changes[channel + e];
    Compute value = own.b * (convert<Compute>(x.at[e]) - own.mean) + own.c;
    if (grad) value = own.a * convert<Compute>(g.at[e]) + value;
    y.at[e] = convert<INPUT>(value);
  }
  *reinterpret_cast<Chunk<INPUT, width>*>(output + at) = y;
}

// `vectors` when no chunk reaches over the end of inner, or of channels where inner is 1.
extern "C" __global__ void __launch_bounds__(kRowThreads)
    apply(const INPUT* grad, const INPUT* input, const Change* changes, INPUT* output,
          int64_t numel, int64_t channels, int64_t inner, bool vectors) {
  bool is_narrow = numel < int64_t(1) << 32;
  if (vectors && is_narrow)
    change<kChunk, uint32_t>(grad, input, changes, output, numel, channels, inner);
  else if (vectors) change<kChunk, uint64_t>(grad, input, changes, output, numel, channels, inner);
  else if (is_narrow) change<1, uint32_t>(grad, input, changes, output, numel, channels, inner);
  else change<1, uint64_t>(grad, input, changes, output, numel, channels, inner);
}

}  // namespace rushlight::on_cuda
