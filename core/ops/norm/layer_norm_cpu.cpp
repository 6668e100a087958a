// Owns the walks of layer_norm over memory.
#include <cmath>

#include "core/base/ceil_div.h"
#include "core/device/threads.h"
#include "core/ops/norm/norm.h"
#include "core/ops/norm/norm_walk.h"
#include "core/ops/ops.h"
#include "core/tensor/reduce.h"

namespace rushlight {

using namespace norm_cpu_detail;

namespace {

struct Statistics {
  double mean, var;
};

// Without `centered` the mean is 0, and var is about that.
template <class T>
Statistics statistics_of(const T* x, int64_t n, bool centered) {
  const auto& k = loops<T>();
  if (n <= kNormRun) {
    T center = centered ? k.sum(x, n) / T(n) : T(0);
    return {center, double(k.squares(x, center, n)) / double(n)};
  }
  Moments moments;
  double squares = 0;
  for_each_run(0, n, [&](int64_t at, int64_t length) {
    if (centered) moments.add_run(x + at, length);
    else squares += double(k.squares(x + at, T(0), length));
  });
  return centered ? Statistics{moments.mean(), moments.var()} : Statistics{0, squares / double(n)};
}

}  // namespace

void layer_norm_cpu(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias,
                    double eps, const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  if (input.numel() == 0) return;
  by_type(compute_dtype(input.dtype()), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    const T* w = data_or_null<T>(weight);
    const T* b = data_or_null<T>(bias);
    Staged<T, 0> from(input);
    Staged<T, 1> to(output);
    parallel_for(0, input.numel() / n, grain_of(n), [&](int64_t begin, int64_t end) {
      for_each_row_piece(begin, end, n, [&](int64_t first, int64_t rows) {
        const T* x = from.read(first * n, rows * n);
        T* y = to.place(first * n, rows * n);
        for (int64_t r = 0; r < rows; ++r) {
          auto [center, variance] = statistics_of(x + r * n, n, mean.defined());
          T m = T(center), scale = T(1 / std::sqrt(variance + eps));
          if (mean.defined()) mean.data<T>()[first + r] = m;
          rstd.data<T>()[first + r] = scale;
          k.layer(x + r * n, m, scale, w, b, y + r * n, n);
        }
        to.store(first * n, y, rows * n);
      });
    });
  });
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_cpu(const Tensor& grad, const Tensor& input,
                                                           int64_t n, const Tensor& mean,
                                                           const Tensor& rstd, const Tensor& weight,
                                                           bool want_weight, bool want_bias) {
  Tensor grad_input = empty(input.sizes(), input.dtype());
  int64_t rows = n ? input.numel() / n : 0;
  // Several blocks share the work among threads; each adds rows enough to be worth merging.
  int64_t blocks = std::clamp<int64_t>(rows / 4, 1, 16);
  blocks = std::max(blocks, ceil_div(rows, kNormRun));
  int64_t rows_of_block = ceil_div(rows, blocks);
  return by_type(compute_dtype(input.dtype()), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    const T *w = data_or_null<T>(weight), *m = data_or_null<T>(mean);
    auto sums = [&](bool wanted) {
      return wanted ? zeros(Shape{blocks, n}, kStatistics<T>, input.device()) : Tensor();
    };
    Tensor weight_sums = sums(want_weight), bias_sums = sums(want_bias);
    Staged<T, 0> x(input);
    Staged<T, 1> g(grad);
    Staged<T, 2> y(grad_input);
    parallel_for(0, blocks, grain_of(rows_of_block * n), [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        T* gw = want_weight ? weight_sums.data<T>() + block * n : nullptr;
        T* gb = want_bias ? bias_sums.data<T>() + block * n : nullptr;
        for_each_row_piece(block * rows_of_block, std::min(rows, (block + 1) * rows_of_block), n,
                           [&](int64_t first, int64_t count) {
                             int64_t at = first * n, length = count * n;
                             const T *from = g.read(at, length), *of = x.read(at, length);
                             T* out = y.place(at, length);
                             for (int64_t r = 0; r < count; ++r)
                               k.layer_grad(from + r * n, of + r * n, m ? m[first + r] : T(0),
                                            rstd.data<T>()[first + r], m != nullptr, w, out + r * n,
                                            gw, gb, n);
                             y.store(at, out, length);
                           });
      }
    });
    auto total = [&](const Tensor& t) {
      return t.defined() ? reduce(Reduction::sum, t, DimSet(1), false, t.dtype()) : t;
    };
    return std::tuple(grad_input, total(weight_sums), total(bias_sums));
  });
}

}  // namespace rushlight
