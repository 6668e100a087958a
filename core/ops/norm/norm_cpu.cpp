// Owns the walks of batch_norm, group_norm and layer_norm over memory; norm_isa.cpp has the inner
// loops, which see half types as float.
//
// Partial sums are cut by the shape alone, never by the number of threads.
#include <cmath>
#include <optional>
#include <vector>

#include "core/device/threads.h"
#include "core/ops/norm/norm.h"
#include "core/ops/norm/norm_loops.h"
#include "core/ops/ops.h"
#include "core/tensor/reduce.h"
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

template <class T>
Tensor to_tensor(const std::vector<double>& values) {
  Tensor out = empty(Shape{int64_t(values.size())}, kStatistics<T>);
  for (size_t i = 0; i < values.size(); ++i) out.data<T>()[i] = T(values[i]);
  return out;
}

// Calls f(offset, length) for runs that cover [begin, begin + n).
template <class F>
void for_each_run(int64_t begin, int64_t n, F&& f) {
  for (int64_t i = 0; i < n; i += kNormRun) f(begin + i, std::min(kNormRun, n - i));
}

// The mean and variance of parts whose sums of squares are taken about centers of their own. The
// first center is subtracted from all, so that merging loses no digits.
struct Moments {
  double count = 0, shift = 0, sum = 0, squares = 0;

  void add(int64_t n, double center, double squares_about_it) {
    if (count == 0) shift = center;
    double distance = center - shift;
    count += double(n);
    sum += double(n) * distance;
    squares += squares_about_it + double(n) * distance * distance;
  }
  template <class T>
  void add_run(const T* x, int64_t n) {
    T center = loops<T>().sum(x, n) / T(n);
    add(n, double(center), double(loops<T>().squares(x, center, n)));
  }
  double mean() const { return shift + sum / count; }
  double var() const {
    double distance = sum / count, value = squares / count - distance * distance;
    return value < 0 ? 0 : value;
  }
};

// The planes of a cell: of batch_norm one channel of each sample, of group_norm those of a group.
template <class F>
void for_each_plane(const ChannelView& v, int64_t cell, F&& f) {
  int64_t planes = v.planes_of_cell();
  int64_t first = v.groups ? cell * planes : cell, step = v.groups ? 1 : v.channels;
  for (int64_t i = 0; i < planes; ++i) f(first + i * step);
}

int64_t grain_of(int64_t elements) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements));
}

// Calls f(row, rows) for pieces of [begin, end): as many rows of n as make a run.
template <class F>
void for_each_row_piece(int64_t begin, int64_t end, int64_t n, F&& f) {
  int64_t most = std::max<int64_t>(1, kStagedRun / std::max<int64_t>(1, n));
  for (int64_t row = begin; row < end; row += most) f(row, std::min(most, end - row));
}

template <class F>
void for_each_cell(const ChannelView& v, F&& f) {
  parallel_for(0, v.cells(), grain_of(v.numel_of_cell()), [&](int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; ++cell) f(cell);
  });
}

// The rows of channels_last memory, in blocks that lie within one sample.
struct RowBlocks {
  ChannelView view;
  int64_t rows_of_block, of_sample;

  RowBlocks(const ChannelView& v, int64_t rows)
      : view(v), rows_of_block(rows), of_sample((v.inner + rows - 1) / rows) {}

  int64_t count() const { return view.samples * of_sample; }
  int64_t rows(int64_t block) const {
    return std::min(rows_of_block, view.inner - block % of_sample * rows_of_block);
  }
  int64_t first_row(int64_t block) const {
    return block / of_sample * view.inner + block % of_sample * rows_of_block;
  }
  // Calls f(block).
  template <class F>
  void for_each(F&& f) const {
    parallel_for(0, count(), grain_of(rows_of_block * view.channels),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t block = begin; block < end; ++block) f(block);
                 });
  }
  // Calls f(offset, rows) for pieces of the first `rows` of a block.
  template <class F>
  void for_each_piece(int64_t block, int64_t rows, F&& f) const {
    int64_t first = first_row(block);
    for_each_row_piece(first, first + rows, view.channels,
                       [&](int64_t row, int64_t count) { f(row * view.channels, count); });
  }
};

// Sums down the columns of blocks of rows, several kinds of them side by side.
template <class T>
struct ColumnSums {
  RowBlocks blocks;
  int64_t kinds;
  std::vector<T> sums;

  ColumnSums(const ChannelView& v, int64_t count)
      : blocks(v, kNormRun), kinds(count), sums(size_t(blocks.count() * kinds * v.channels)) {}

  T* of(int64_t block, int64_t kind) {
    return &sums[size_t((block * kinds + kind) * blocks.view.channels)];
  }
  // Calls f(block, column) for what the plane is made of.
  template <class F>
  void for_each_part(int64_t plane, F&& f) const {
    int64_t channels = blocks.view.channels, first = plane / channels * blocks.of_sample;
    for (int64_t block = first; block < first + blocks.of_sample; ++block)
      f(block, plane % channels);
  }
};

// Rows whose mean is close enough to that of a block for its squares to keep their digits: a wild
// one among them moves it by little.
constexpr int64_t kShiftRows = 32;

template <class T>
ColumnSums<T> column_moments(const ChannelView& v, const Staged<T, 0>& x) {
  ColumnSums<T> sums(v, 3);
  const auto& k = loops<T>();
  int64_t n = v.channels;
  sums.blocks.for_each([&](int64_t block) {
    T *shift = sums.of(block, 0), *sum = sums.of(block, 1), *squares = sums.of(block, 2);
    int64_t rows = sums.blocks.rows(block), few = std::min(rows, kShiftRows);
    sums.blocks.for_each_piece(block, few, [&](int64_t at, int64_t count) {
      k.column_sum(x.read(at, count * n), count, n, shift);
    });
    for (int64_t c = 0; c < n; ++c) shift[c] /= T(few);
    sums.blocks.for_each_piece(block, rows, [&](int64_t at, int64_t count) {
      k.column_moments(x.read(at, count * n), shift, count, n, sum, squares);
    });
  });
  return sums;
}

template <class T>
ColumnSums<T> column_grad_sums(const ChannelView& v, const Staged<T, 1>& g, const Staged<T, 0>& x,
                               const std::vector<T>& mean_of_plane) {
  ColumnSums<T> sums(v, 2);
  const auto& k = loops<T>();
  int64_t n = v.channels;
  sums.blocks.for_each([&](int64_t block) {
    const T* mean = &mean_of_plane[size_t(block / sums.blocks.of_sample * n)];
    sums.blocks.for_each_piece(block, sums.blocks.rows(block), [&](int64_t at, int64_t count) {
      k.column_grad_sums(g.read(at, count * n), x.read(at, count * n), mean, count, n,
                         sums.of(block, 0), sums.of(block, 1));
    });
  });
  return sums;
}

// Calls f(sample, offset, rows) for all rows.
template <class F>
void for_each_rows(const ChannelView& v, F&& f) {
  RowBlocks blocks(v, grain_of(v.channels));
  blocks.for_each([&](int64_t block) {
    blocks.for_each_piece(block, blocks.rows(block),
                          [&](int64_t at, int64_t rows) { f(block / blocks.of_sample, at, rows); });
  });
}

}  // namespace

void channel_norm_cpu(const Tensor& input, const ChannelView& v, const Tensor& weight,
                      const Tensor& bias, bool training, double eps, const Tensor& mean,
                      const Tensor& var, const Tensor& rstd, const Tensor& output) {
  by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    const T* w = data_or_null<T>(weight);
    const T* b = data_or_null<T>(bias);
    T *means = mean.data<T>(), *vars = var.data<T>(), *rstds = rstd.data<T>();
    Staged<T, 0> x(input);
    Staged<T, 0> y(output);  // element by element, so in the buffer of x
    auto set_rstd = [&](int64_t cell) { rstds[cell] = T(1 / std::sqrt(double(vars[cell]) + eps)); };
    auto keep = [&](int64_t cell, const Moments& moments) {
      means[cell] = T(moments.mean());
      vars[cell] = T(moments.var());
      set_rstd(cell);
    };
    // What a plane does to its elements: scale x + shift.
    auto change = [&](int64_t cell, int64_t plane) {
      int64_t c = plane % v.channels;
      T scale = rstds[cell] * (w ? w[c] : T(1));
      return std::pair(scale, (b ? b[c] : T(0)) - means[cell] * scale);
    };
    auto normalize = [&](int64_t cell, int64_t plane) {
      auto [scale, shift] = change(cell, plane);
      for_each_run(plane * v.inner, v.inner, [&](int64_t at, int64_t n) {
        T* out = y.place(at, n);
        k.affine(x.read(at, n), scale, shift, out, n);
        y.store(at, out, n);
      });
    };
    if (!v.by_columns && training) {  // a cell stays in the cache from its statistics on
      for_each_cell(v, [&](int64_t cell) {
        Moments moments;
        for_each_plane(v, cell, [&](int64_t plane) {
          for_each_run(plane * v.inner, v.inner,
                       [&](int64_t at, int64_t n) { moments.add_run(x.read(at, n), n); });
        });
        keep(cell, moments);
        for_each_plane(v, cell, [&](int64_t plane) { normalize(cell, plane); });
      });
      return;
    }
    if (!v.by_columns) {
      for (int64_t cell = 0; cell < v.cells(); ++cell) set_rstd(cell);
      parallel_for(0, v.samples * v.channels, grain_of(v.inner), [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) normalize(v.cell_of(plane), plane);
      });
      return;
    }
    std::optional<ColumnSums<T>> sums;
    if (training) sums = column_moments<T>(v, x);
    std::vector<T> scales(size_t(v.samples * v.channels)), shifts(scales.size());
    for_each_cell(v, [&](int64_t cell) {
      if (sums) {
        Moments moments;
        for_each_plane(v, cell, [&](int64_t plane) {
          sums->for_each_part(plane, [&](int64_t block, int64_t c) {
            int64_t n = sums->blocks.rows(block);
            double sum = double(sums->of(block, 1)[c]), distance = sum / double(n);
            moments.add(n, double(sums->of(block, 0)[c]) + distance,
                        double(sums->of(block, 2)[c]) - sum * distance);
          });
        });
        keep(cell, moments);
      } else {
        set_rstd(cell);
      }
      for_each_plane(v, cell, [&](int64_t plane) {
        std::tie(scales[size_t(plane)], shifts[size_t(plane)]) = change(cell, plane);
      });
    });
    for_each_rows(v, [&](int64_t sample, int64_t at, int64_t rows) {
      int64_t first = sample * v.channels, n = rows * v.channels;
      T* out = y.place(at, n);
      k.column_affine(x.read(at, n), &scales[size_t(first)], &shifts[size_t(first)], out, rows,
                      v.channels);
      y.store(at, out, n);
    });
  });
}

std::tuple<Tensor, Tensor, Tensor> channel_norm_backward_cpu(const Tensor& grad,
                                                             const Tensor& input,
                                                             const ChannelView& v,
                                                             const Tensor& mean, const Tensor& rstd,
                                                             const Tensor& weight, bool training) {
  return by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    const T* w = data_or_null<T>(weight);
    const T *means = mean.data<T>(), *rstds = rstd.data<T>();
    Tensor grad_input = empty_strided(input.sizes(), input.strides(), input.dtype());
    Staged<T, 0> x(input);
    Staged<T, 1> g(grad);
    Staged<T, 0> y(grad_input);  // element by element, so in the buffer of x
    // Of each plane: the sums of grad and of grad * (input - mean), and what becomes of its
    // elements: grad_input = scale grad + slope input + rest.
    size_t planes = size_t(v.samples * v.channels);
    std::vector<double> sums(planes), dots(planes);
    std::vector<T> scales(planes), slopes(planes), rests(planes);
    double count = double(v.numel_of_cell());
    auto scale_of = [&](int64_t cell, int64_t plane) {
      return double(rstds[cell]) * (w ? double(w[plane % v.channels]) : 1.0);
    };
    // The statistics give back what their sums over the cell say, by way of each plane's scale.
    auto change = [&](int64_t cell) {
      double r = double(rstds[cell]), sum = 0, dot = 0;
      for_each_plane(v, cell, [&](int64_t plane) {
        double scale = scale_of(cell, plane);
        sum += scale * sums[size_t(plane)];
        dot += scale * dots[size_t(plane)];
      });
      double slope = training ? -r * r * dot / count : 0.0;
      double rest = training ? -sum / count - slope * double(means[cell]) : 0.0;
      for_each_plane(v, cell, [&](int64_t plane) {
        scales[size_t(plane)] = T(scale_of(cell, plane));
        slopes[size_t(plane)] = T(slope);
        rests[size_t(plane)] = T(rest);
      });
    };
    if (v.by_columns) {
      std::vector<T> mean_of_plane(planes);
      for (int64_t p = 0; p < int64_t(planes); ++p) mean_of_plane[size_t(p)] = means[v.cell_of(p)];
      ColumnSums<T> parts = column_grad_sums<T>(v, g, x, mean_of_plane);
      for_each_cell(v, [&](int64_t cell) {
        for_each_plane(v, cell, [&](int64_t plane) {
          parts.for_each_part(plane, [&](int64_t block, int64_t c) {
            sums[size_t(plane)] += double(parts.of(block, 0)[c]);
            dots[size_t(plane)] += double(parts.of(block, 1)[c]);
          });
        });
        change(cell);
      });
      for_each_rows(v, [&](int64_t sample, int64_t at, int64_t rows) {
        size_t first = size_t(sample * v.channels);
        int64_t n = rows * v.channels;
        T* out = y.place(at, n);
        if (training)
          k.column_combine(g.read(at, n), x.read(at, n), &scales[first], &slopes[first],
                           &rests[first], out, rows, v.channels);
        else k.column_affine(g.read(at, n), &scales[first], &rests[first], out, rows, v.channels);
        y.store(at, out, n);
      });
    } else {
      for_each_cell(v, [&](int64_t cell) {
        for_each_plane(v, cell, [&](int64_t plane) {
          for_each_run(plane * v.inner, v.inner, [&](int64_t at, int64_t n) {
            T sum, dot;
            k.grad_sums(g.read(at, n), x.read(at, n), means[cell], n, &sum, &dot);
            sums[size_t(plane)] += double(sum);
            dots[size_t(plane)] += double(dot);
          });
        });
        change(cell);
        for_each_plane(v, cell, [&](int64_t plane) {
          size_t p = size_t(plane);
          for_each_run(plane * v.inner, v.inner, [&](int64_t at, int64_t n) {
            T* out = y.place(at, n);
            if (training)
              k.combine(g.read(at, n), x.read(at, n), scales[p], slopes[p], rests[p], out, n);
            else k.affine(g.read(at, n), scales[p], rests[p], out, n);
            y.store(at, out, n);
          });
        });
      });
    }
    std::vector<double> grad_weight(size_t(v.channels)), grad_bias(grad_weight.size());
    for (size_t p = 0; p < planes; ++p) {
      size_t c = p % grad_bias.size();
      grad_weight[c] += dots[p] * double(rstds[v.cell_of(int64_t(p))]);
      grad_bias[c] += sums[p];
    }
    return std::tuple(grad_input, to_tensor<T>(grad_weight), to_tensor<T>(grad_bias));
  });
}

void layer_norm_cpu(const Tensor& input, int64_t n, const Tensor& weight, const Tensor& bias,
                    double eps, const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  if (input.numel() == 0) return;
  by_type(input.dtype(), [&]<class T>(Tag<T>) {
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
          Moments moments;
          for_each_run(r * n, n,
                       [&](int64_t at, int64_t length) { moments.add_run(x + at, length); });
          T m = T(moments.mean()), scale = T(1 / std::sqrt(moments.var() + eps));
          mean.data<T>()[first + r] = m;
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
  blocks = std::max(blocks, (rows + kNormRun - 1) / kNormRun);
  int64_t rows_of_block = (rows + blocks - 1) / blocks;
  return by_type(input.dtype(), [&]<class T>(Tag<T>) {
    const auto& k = loops<T>();
    const T* w = data_or_null<T>(weight);
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
                               k.layer_grad(from + r * n, of + r * n, mean.data<T>()[first + r],
                                            rstd.data<T>()[first + r], w, out + r * n, gw, gb, n);
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
