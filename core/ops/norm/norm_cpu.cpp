// Owns the walks of batch_norm and layer_norm over memory; norm_isa.cpp has the inner loops, which
// see half types as float.
//
// Partial sums are cut by the shape alone, never by the number of threads.
#include <cmath>
#include <vector>

#include "core/device/threads.h"
#include "core/ops/norm/norm.h"
#include "core/ops/norm/norm_loops.h"
#include "core/tensor/staged.h"

namespace rushlight {

ISA_TABLES(NormLoops, norm_loops)

namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

template <class T>
const NormLoopsOf<T>& loops() {
  return active_of<T>(norm_loops_sets);
}

template <class F>
decltype(auto) by_type(DType dtype, F&& f) {
  return dtype == DType::float64 ? f(Tag<double>{}) : f(Tag<float>{});
}
template <class T>
constexpr DType kStatistics = std::is_same_v<T, float> ? DType::float32 : DType::float64;

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

// Calls f(row, rows) for pieces of [begin, end) that fit into the buffers of what is staged.
template <class F>
void for_each_staged_rows(int64_t begin, int64_t end, int64_t columns, bool staged, F&& f) {
  int64_t most = staged ? std::max<int64_t>(1, kStagedRun / columns) : end - begin;
  for (int64_t row = begin; row < end; row += most) f(row, std::min(most, end - row));
}

// The same when channels are the columns of `outer` rows: part(row, rows, into) adds to `into`.
template <class T, class F>
std::vector<double> sum_columns(ChannelView v, bool staged, F&& part) {
  int64_t blocks = (v.outer + kNormRun - 1) / kNormRun;
  std::vector<T> partial(size_t(blocks * v.channels));
  int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, kNormRun * v.channels));
  parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      for_each_staged_rows(
          b * kNormRun, std::min((b + 1) * kNormRun, v.outer), v.channels, staged,
          [&](int64_t row, int64_t rows) { part(row, rows, &partial[size_t(b * v.channels)]); });
  });
  std::vector<double> sums(size_t(v.channels));
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t c = 0; c < v.channels; ++c)
      sums[size_t(c)] += double(partial[size_t(b * v.channels + c)]);
  return sums;
}

// Calls run(channel, offset, length) for every run of memory, or rows(row, count) for columns.
template <class Run, class Rows>
void for_each_piece(ChannelView v, bool staged, Run&& run, Rows&& rows) {
  if (v.inner == 1) {
    int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, v.channels));
    parallel_for(0, v.outer, grain, [&](int64_t begin, int64_t end) {
      for_each_staged_rows(begin, end, v.channels, staged, rows);
    });
    return;
  }
  int64_t most = staged ? kStagedRun : v.inner;
  int64_t grain = std::max<int64_t>(1, kGrain / v.inner);
  parallel_for(0, v.outer * v.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t at = 0; at < v.inner; at += most)
        run(i % v.channels, i * v.inner + at, std::min(most, v.inner - at));
  });
}

template <class T>
Tensor to_tensor(const std::vector<double>& values) {
  Tensor out = empty(Shape{int64_t(values.size())}, kStatistics<T>);
  for (size_t i = 0; i < values.size(); ++i) out.data<T>()[i] = T(values[i]);
  return out;
}

}  // namespace

ChannelStats channel_stats_cpu(const Tensor& input, ChannelView v) {
  return by_type(input.dtype(), [&]<class T>(Tag<T>) -> ChannelStats {
    const auto& k = loops<T>();
    Staged<T, 0> x(input);
    double count = double(v.outer * v.inner);
    auto divided = [&](std::vector<double> sums) {
      for (double& s : sums) s /= count;
      return to_tensor<T>(sums);
    };
    auto rows_of_x = [&](int64_t row, int64_t rows) {
      return x.read(row * v.channels, rows * v.channels);
    };
    if (v.inner == 1) {
      bool staged = x.is_converted();
      Tensor mean = divided(sum_columns<T>(v, staged, [&](int64_t row, int64_t rows, T* into) {
        k.column_sum(rows_of_x(row, rows), rows, v.channels, into);
      }));
      Tensor var = divided(sum_columns<T>(v, staged, [&](int64_t row, int64_t rows, T* into) {
        k.column_squares(rows_of_x(row, rows), mean.data<T>(), rows, v.channels, into);
      }));
      return {mean, var};
    }
    Tensor mean = divided(
        sum_channels(v, [&](int64_t, int64_t at, int64_t n) { return k.sum(x.read(at, n), n); }));
    Tensor var = divided(sum_channels(v, [&](int64_t c, int64_t at, int64_t n) {
      return k.squares(x.read(at, n), mean.data<T>()[c], n);
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
    Staged<T, 0> x(input);
    Staged<T, 1> y(output);
    for_each_piece(
        v, x.is_converted(),
        [&](int64_t c, int64_t at, int64_t n) {
          T* out = y.place(at, n);
          k.affine(x.read(at, n), scale[size_t(c)], shift[size_t(c)], out, n);
          y.store(at, out, n);
        },
        [&](int64_t row, int64_t rows) {
          int64_t at = row * v.channels, n = rows * v.channels;
          T* out = y.place(at, n);
          k.column_affine(x.read(at, n), scale.data(), shift.data(), out, rows, v.channels);
          y.store(at, out, n);
        });
  });
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_cpu(const Tensor& grad, const Tensor& input,
                                                           ChannelView v, const Tensor& mean,
                                                           const Tensor& rstd, const Tensor& weight,
                                                           bool training) {
  return by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    Staged<T, 0> x(input);
    Staged<T, 1> g(grad);
    const T* m = mean.data<T>();
    std::vector<double> sums, dots;
    if (v.inner == 1) {
      bool staged = x.is_converted();
      sums = sum_columns<T>(v, staged, [&](int64_t row, int64_t rows, T* into) {
        k.column_sum(g.read(row * v.channels, rows * v.channels), rows, v.channels, into);
      });
      dots = sum_columns<T>(v, staged, [&](int64_t row, int64_t rows, T* into) {
        int64_t at = row * v.channels, n = rows * v.channels;
        k.column_dot(g.read(at, n), x.read(at, n), m, rows, v.channels, into);
      });
    } else {
      sums =
          sum_channels(v, [&](int64_t, int64_t at, int64_t n) { return k.sum(g.read(at, n), n); });
      dots = sum_channels(v, [&](int64_t c, int64_t at, int64_t n) {
        return k.dot(g.read(at, n), x.read(at, n), m[c], n);
      });
    }
    // grad_input = a g + b x + c: what the sums of the statistics give back, by channel.
    size_t channels = size_t(v.channels);
    std::vector<T> a(channels), b(channels), c(channels);
    double count = double(v.outer * v.inner);
    const T* w = data_or_null<T>(weight);
    Tensor grad_weight = empty(Shape{v.channels}, kStatistics<T>);
    for (size_t i = 0; i < channels; ++i) {
      double r = double(rstd.data<T>()[i]), scale = r * (w ? double(w[i]) : 1.0);
      grad_weight.data<T>()[i] = T(dots[i] * r);
      double slope = training ? -scale * r * r * dots[i] / count : 0.0;
      a[i] = T(scale);
      b[i] = T(slope);
      c[i] = T(training ? -scale * sums[i] / count - slope * double(m[i]) : 0.0);
    }
    Tensor grad_input = empty_strided(input.sizes(), input.strides(), input.dtype());
    Staged<T, 2> y(grad_input);
    for_each_piece(
        v, x.is_converted(),
        [&](int64_t i, int64_t at, int64_t n) {
          T* out = y.place(at, n);
          k.combine(g.read(at, n), x.read(at, n), a[size_t(i)], b[size_t(i)], c[size_t(i)], out, n);
          y.store(at, out, n);
        },
        [&](int64_t row, int64_t rows) {
          int64_t at = row * v.channels, n = rows * v.channels;
          T* out = y.place(at, n);
          k.column_combine(g.read(at, n), x.read(at, n), a.data(), b.data(), c.data(), out, rows,
                           v.channels);
          y.store(at, out, n);
        });
    return std::tuple(grad_input, grad_weight, to_tensor<T>(sums));
  });
}

void layer_norm_cpu(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias,
                    double eps, const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  if (input.numel() == 0) return;
  by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    const T* w = data_or_null<T>(weight);
    const T* b = data_or_null<T>(bias);
    Staged<T, 0> rows(input);
    Staged<T, 1> out(output);
    parallel_for(
        0, input.numel() / n, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const T* x = rows.read(r * n, n);
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
            T* y = out.place(r * n, n);
            k.layer(x, T(m), scale, w, b, y, n);
            out.store(r * n, y, n);
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
    Staged<T, 0> x(input);
    Staged<T, 1> g(grad);
    Staged<T, 2> y(grad_input);
    parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        T* gw = want_weight ? &partial[size_t(2 * block * n)] : nullptr;
        T* gb = want_bias ? &partial[size_t((2 * block + 1) * n)] : nullptr;
        for (int64_t r = block * rows_of_block; r < std::min(rows, (block + 1) * rows_of_block);
             ++r) {
          T* out = y.place(r * n, n);
          k.layer_grad(g.read(r * n, n), x.read(r * n, n), mean.data<T>()[r], rstd.data<T>()[r], w,
                       out, gw, gb, n);
          y.store(r * n, out, n);
        }
      }
    });
    auto total = [&](int64_t which, bool wanted) -> Tensor {
      if (!wanted) return {};
      std::vector<double> sums(static_cast<size_t>(n));
      for (int64_t block = 0; block < blocks; ++block)
        for (int64_t i = 0; i < n; ++i)
          sums[size_t(i)] += double(partial[size_t((2 * block + which) * n + i)]);
      return to_tensor<T>(sums);
    };
    return std::tuple(grad_input, total(0, want_weight), total(1, want_bias));
  });
}

}  // namespace rushlight
