// Owns the walks of batch_norm and layer_norm over memory; norm_isa.cpp has the inner loops.
//
// Partial sums are cut by the shape alone, never by the number of threads.
#include <cmath>
#include <vector>

#include "core/device/threads.h"
#include "core/ops/norm.h"
#include "core/ops/norm_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa, name) \
  namespace isa {                    \
  extern const NormLoops name;       \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE, norm_loops)
#undef RUSHLIGHT_DECLARE

namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

template <class T>
const NormLoopsOf<T>& loops() {
#define RUSHLIGHT_ADDRESS(isa, name) &isa::name,
  static constexpr IsaSets<NormLoops> sets = {
      RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_ADDRESS, norm_loops)};
#undef RUSHLIGHT_ADDRESS
  if constexpr (std::is_same_v<T, float>) return active(sets).f32;
  else return active(sets).f64;
}

template <class F>
decltype(auto) by_type(DType dtype, F&& f) {
  return dtype == DType::float32 ? f(Tag<float>{}) : f(Tag<double>{});
}

template <class T>
const T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

// Adds part(start, length) for runs that cover n elements.
template <class F>
double sum_runs(int64_t n, F&& part) {
  double total = 0;
  for (int64_t i = 0; i < n; i += kNormRun) total += double(part(i, std::min(kNormRun, n - i)));
  return total;
}

// One sum per channel of what `part` sums over a run: part(channel, offset, length).
template <class F>
std::vector<double> sum_channels(ChannelView v, F&& part) {
  std::vector<double> sums(size_t(v.channels));
  int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, v.outer * v.inner));
  parallel_for(0, v.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      for (int64_t o = 0; o < v.outer; ++o) {
        int64_t start = (o * v.channels + c) * v.inner;
        sums[size_t(c)] +=
            sum_runs(v.inner, [&](int64_t i, int64_t n) { return part(c, start + i, n); });
      }
  });
  return sums;
}

// The same when channels are the columns of `outer` rows: part(row, rows, into) adds to `into`.
template <class T, class F>
std::vector<double> sum_columns(ChannelView v, F&& part) {
  int64_t blocks = (v.outer + kNormRun - 1) / kNormRun;
  std::vector<T> partial(size_t(blocks * v.channels));
  int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, kNormRun * v.channels));
  parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      part(b * kNormRun, std::min(kNormRun, v.outer - b * kNormRun),
           &partial[size_t(b * v.channels)]);
  });
  std::vector<double> sums(size_t(v.channels));
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t c = 0; c < v.channels; ++c)
      sums[size_t(c)] += double(partial[size_t(b * v.channels + c)]);
  return sums;
}

// Calls run(channel, offset, length) for every run of memory, or rows(row, count) for columns.
template <class Run, class Rows>
void for_each_piece(ChannelView v, Run&& run, Rows&& rows) {
  if (v.inner == 1) {
    int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, v.channels));
    parallel_for(0, v.outer, grain, [&](int64_t begin, int64_t end) { rows(begin, end - begin); });
    return;
  }
  int64_t grain = std::max<int64_t>(1, kGrain / v.inner);
  parallel_for(0, v.outer * v.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) run(i % v.channels, i * v.inner, v.inner);
  });
}

template <class T>
Tensor to_tensor(const std::vector<double>& values, DType dtype) {
  Tensor out = empty(Shape{int64_t(values.size())}, dtype);
  for (size_t i = 0; i < values.size(); ++i) out.data<T>()[i] = T(values[i]);
  return out;
}

}  // namespace

ChannelStats channel_stats_cpu(const Tensor& input, ChannelView v) {
  return by_type(input.dtype(), [&]<class T>(Tag<T>) -> ChannelStats {
    const auto& k = loops<T>();
    const T* x = input.data<T>();
    double count = double(v.outer * v.inner);
    auto divided = [&](std::vector<double> sums) {
      for (double& s : sums) s /= count;
      return to_tensor<T>(sums, input.dtype());
    };
    if (v.inner == 1) {
      Tensor mean = divided(sum_columns<T>(v, [&](int64_t row, int64_t rows, T* into) {
        k.column_sum(x + row * v.channels, rows, v.channels, into);
      }));
      Tensor var = divided(sum_columns<T>(v, [&](int64_t row, int64_t rows, T* into) {
        k.column_squares(x + row * v.channels, mean.data<T>(), rows, v.channels, into);
      }));
      return {mean, var};
    }
    Tensor mean =
        divided(sum_channels(v, [&](int64_t, int64_t at, int64_t n) { return k.sum(x + at, n); }));
    Tensor var = divided(sum_channels(v, [&](int64_t c, int64_t at, int64_t n) {
      return k.squares(x + at, mean.data<T>()[c], n);
    }));
    return {mean, var};
  });
}

void batch_norm_cpu(const Tensor& input, ChannelView v, const Tensor& mean, const Tensor& rstd,
                    const Tensor& weight, const Tensor& bias, const Tensor& output) {
  by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    std::vector<T> scale(size_t(v.channels)), shift(size_t(v.channels));
    const T* w = data_or_null<T>(weight);
    const T* b = data_or_null<T>(bias);
    for (size_t c = 0; c < scale.size(); ++c) {
      scale[c] = rstd.data<T>()[c] * (w ? w[c] : T(1));
      shift[c] = (b ? b[c] : T(0)) - mean.data<T>()[c] * scale[c];
    }
    const T* x = input.data<T>();
    T* y = output.data<T>();
    for_each_piece(
        v,
        [&](int64_t c, int64_t at, int64_t n) {
          k.affine(x + at, scale[size_t(c)], shift[size_t(c)], y + at, n);
        },
        [&](int64_t row, int64_t rows) {
          int64_t at = row * v.channels;
          k.column_affine(x + at, scale.data(), shift.data(), y + at, rows, v.channels);
        });
  });
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_cpu(const Tensor& grad, const Tensor& input,
                                                           ChannelView v, const Tensor& mean,
                                                           const Tensor& rstd, const Tensor& weight,
                                                           bool training) {
  return by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    const T* x = input.data<T>();
    const T* g = grad.data<T>();
    const T* m = mean.data<T>();
    std::vector<double> sums, dots;
    if (v.inner == 1) {
      sums = sum_columns<T>(v, [&](int64_t row, int64_t rows, T* into) {
        k.column_sum(g + row * v.channels, rows, v.channels, into);
      });
      dots = sum_columns<T>(v, [&](int64_t row, int64_t rows, T* into) {
        k.column_dot(g + row * v.channels, x + row * v.channels, m, rows, v.channels, into);
      });
    } else {
      sums = sum_channels(v, [&](int64_t, int64_t at, int64_t n) { return k.sum(g + at, n); });
      dots = sum_channels(
          v, [&](int64_t c, int64_t at, int64_t n) { return k.dot(g + at, x + at, m[c], n); });
    }
    // grad_input = a g + b x + c: what the sums of the statistics give back, by channel.
    size_t channels = size_t(v.channels);
    std::vector<T> a(channels), b(channels), c(channels);
    double count = double(v.outer * v.inner);
    const T* w = data_or_null<T>(weight);
    Tensor grad_weight = empty(Shape{v.channels}, input.dtype());
    for (size_t i = 0; i < channels; ++i) {
      double r = double(rstd.data<T>()[i]), scale = r * (w ? double(w[i]) : 1.0);
      grad_weight.data<T>()[i] = T(dots[i] * r);
      double slope = training ? -scale * r * r * dots[i] / count : 0.0;
      a[i] = T(scale);
      b[i] = T(slope);
      c[i] = T(training ? -scale * sums[i] / count - slope * double(m[i]) : 0.0);
    }
    Tensor grad_input = empty_strided(input.sizes(), input.strides(), input.dtype());
    T* out = grad_input.data<T>();
    for_each_piece(
        v,
        [&](int64_t i, int64_t at, int64_t n) {
          k.combine(g + at, x + at, a[size_t(i)], b[size_t(i)], c[size_t(i)], out + at, n);
        },
        [&](int64_t row, int64_t rows) {
          int64_t at = row * v.channels;
          k.column_combine(g + at, x + at, a.data(), b.data(), c.data(), out + at, rows,
                           v.channels);
        });
    return std::tuple(grad_input, grad_weight, to_tensor<T>(sums, input.dtype()));
  });
}

void layer_norm_cpu(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias,
                    double eps, const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  if (input.numel() == 0) return;
  by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    const T* w = data_or_null<T>(weight);
    const T* b = data_or_null<T>(bias);
    parallel_for(
        0, input.numel() / n, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const T* x = input.data<T>() + r * n;
            double m =
                sum_runs(n, [&](int64_t i, int64_t length) { return k.sum(x + i, length); }) /
                double(n);
            double var =
                sum_runs(
                    n, [&](int64_t i, int64_t length) { return k.squares(x + i, T(m), length); }) /
                double(n);
            T scale = T(1 / std::sqrt(var + eps));
            mean.data<T>()[r] = T(m);
            rstd.data<T>()[r] = scale;
            k.layer(x, T(m), scale, w, b, output.data<T>() + r * n, n);
          }
        });
  });
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_cpu(const Tensor& grad, const Tensor& input,
                                                           int64_t n, const Tensor& mean,
                                                           const Tensor& rstd, const Tensor& weight,
                                                           bool want_weight, bool want_bias) {
  Tensor grad_input = empty(input.sizes(), input.dtype());
  int64_t rows = n ? input.numel() / n : 0;
  return by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    const T* w = data_or_null<T>(weight);
    int64_t blocks = (rows + kNormRun - 1) / kNormRun, rows_of_block = kNormRun;
    if (rows * n >= kGrain) {  // several blocks, so that threads share the work
      blocks = std::min<int64_t>(rows, 16);
      rows_of_block = (rows + blocks - 1) / blocks;
    }
    std::vector<T> partial(size_t(2 * blocks * n));
    parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        T* gw = want_weight ? &partial[size_t(2 * block * n)] : nullptr;
        T* gb = want_bias ? &partial[size_t((2 * block + 1) * n)] : nullptr;
        for (int64_t r = block * rows_of_block; r < std::min(rows, (block + 1) * rows_of_block);
             ++r)
          k.layer_grad(grad.data<T>() + r * n, input.data<T>() + r * n, mean.data<T>()[r],
                       rstd.data<T>()[r], w, grad_input.data<T>() + r * n, gw, gb, n);
      }
    });
    auto total = [&](int64_t which, bool wanted) -> Tensor {
      if (!wanted) return {};
      std::vector<double> sums(static_cast<size_t>(n));
      for (int64_t block = 0; block < blocks; ++block)
        for (int64_t i = 0; i < n; ++i)
          sums[size_t(i)] += double(partial[size_t((2 * block + which) * n + i)]);
      return to_tensor<T>(sums, input.dtype());
    };
    return std::tuple(grad_input, total(0, want_weight), total(1, want_bias));
  });
}

}  // namespace rushlight
