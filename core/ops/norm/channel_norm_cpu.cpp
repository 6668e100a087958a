// Owns the walks of batch_norm and group_norm over memory.
#include <cmath>
#include <optional>
#include <vector>

#include "core/base/ceil_div.h"
#include "core/device/threads.h"
#include "core/ops/norm/norm.h"
#include "core/ops/norm/norm_walk.h"

namespace rushlight {

using namespace norm_cpu_detail;

namespace {

template <class T>
Tensor to_tensor(const std::vector<double>& values) {
  Tensor out = empty(Shape{int64_t(values.size())}, kStatistics<T>);
  for (size_t i = 0; i < values.size(); ++i) out.data<T>()[i] = T(values[i]);
  return out;
}

// The planes of a cell: of batch_norm one channel of each sample, of group_norm those of a group.
template <class F>
void for_each_plane(const ChannelView& v, int64_t cell, F&& f) {
  int64_t planes = v.planes_of_cell();
  int64_t first = v.groups ? cell * planes : cell, step = v.groups ? 1 : v.channels;
  for (int64_t i = 0; i < planes; ++i) f(first + i * step);
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
      : view(v), rows_of_block(rows), of_sample(ceil_div(v.inner, rows)) {}

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

// One call of channel_norm_cpu.
template <class T>
class ChannelNorm {
 public:
  ChannelNorm(const Tensor& input, const ChannelView& view, const Tensor& weight,
              const Tensor& bias, double eps, const Tensor& mean, const Tensor& var,
              const Tensor& rstd, const Tensor& output)
      : v_(view),
        x_(input),
        in_(input),
        out_(output),
        change_loops_(change_loops<T>(input.dtype())),
        weight_(data_or_null<T>(weight)),
        bias_(data_or_null<T>(bias)),
        eps_(eps),
        means_(mean.data<T>()),
        vars_(var.data<T>()),
        rstds_(rstd.data<T>()) {}

  void run(bool training) const {
    if (v_.by_columns) by_columns(training);
    else if (training) by_cells();
    else by_planes();
  }

 private:
  // What a plane does to its elements: scale x + shift.
  struct Change {
    T scale, shift;
  };

  // With the statistics of the input; a cell stays in the cache from them on.
  void by_cells() const {
    for_each_cell(v_, [&](int64_t cell) {
      Moments moments;
      for_each_plane(v_, cell, [&](int64_t plane) {
        for_each_run(plane * v_.inner, v_.inner,
                     [&](int64_t at, int64_t n) { moments.add_run(x_.read(at, n), n); });
      });
      keep(cell, moments);
      for_each_plane(v_, cell, [&](int64_t plane) { normalize(cell, plane); });
    });
  }

  // With the statistics that are given.
  void by_planes() const {
    for (int64_t cell = 0; cell < v_.cells(); ++cell) set_rstd(cell);
    parallel_for(0, v_.samples * v_.channels, grain_of(v_.inner), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) normalize(v_.cell_of(plane), plane);
    });
  }

  void by_columns(bool training) const {
    std::optional<ColumnSums<T>> sums;
    if (training) sums = column_moments<T>(v_, x_);
    std::vector<T> scales(size_t(v_.samples * v_.channels)), shifts(scales.size());
    for_each_cell(v_, [&](int64_t cell) {
      if (sums) keep(cell, moments_of(*sums, cell));
      else set_rstd(cell);
      for_each_plane(v_, cell, [&](int64_t plane) {
        auto [scale, shift] = change(cell, plane);
        scales[size_t(plane)] = scale;
        shifts[size_t(plane)] = shift;
      });
    });
    for_each_rows(v_, [&](int64_t sample, int64_t at, int64_t rows) {
      size_t first = size_t(sample * v_.channels);
      change_loops_.column_affine(in_.at(at), &scales[first], &shifts[first], out_.at(at), rows,
                                  v_.channels);
    });
  }

  Moments moments_of(ColumnSums<T>& sums, int64_t cell) const {
    Moments moments;
    for_each_plane(v_, cell, [&](int64_t plane) {
      sums.for_each_part(plane, [&](int64_t block, int64_t c) {
        int64_t n = sums.blocks.rows(block);
        double sum = double(sums.of(block, 1)[c]), distance = sum / double(n);
        moments.add(n, double(sums.of(block, 0)[c]) + distance,
                    double(sums.of(block, 2)[c]) - sum * distance);
      });
    });
    return moments;
  }

  void keep(int64_t cell, const Moments& moments) const {
    means_[cell] = T(moments.mean());
    vars_[cell] = T(moments.var());
    set_rstd(cell);
  }
  void set_rstd(int64_t cell) const { rstds_[cell] = T(1 / std::sqrt(double(vars_[cell]) + eps_)); }

  Change change(int64_t cell, int64_t plane) const {
    int64_t c = plane % v_.channels;
    T scale = rstds_[cell] * (weight_ ? weight_[c] : T(1));
    return {scale, (bias_ ? bias_[c] : T(0)) - means_[cell] * scale};
  }
  void normalize(int64_t cell, int64_t plane) const {
    auto [scale, shift] = change(cell, plane);
    int64_t at = plane * v_.inner;
    change_loops_.affine(in_.at(at), scale, shift, out_.at(at), v_.inner);
  }

  const ChannelView& v_;
  Staged<T, 0> x_;
  Elements in_, out_;
  const ChangeLoops<T>& change_loops_;
  const T *weight_, *bias_;
  double eps_;
  T *means_, *vars_, *rstds_;
};

// One call of channel_norm_backward_cpu; grad has the dtype of input.
template <class T>
class ChannelNormBackward {
 public:
  ChannelNormBackward(const Tensor& grad, const Tensor& input, const ChannelView& view,
                      const Tensor& mean, const Tensor& rstd, const Tensor& weight, bool training)
      : v_(view),
        grad_input_(empty_strided(input.sizes(), input.strides(), input.dtype())),
        x_(input),
        g_(grad),
        in_(input),
        gradient_(grad),
        out_(grad_input_),
        change_loops_(change_loops<T>(input.dtype())),
        weight_(data_or_null<T>(weight)),
        means_(mean.data<T>()),
        rstds_(rstd.data<T>()),
        training_(training),
        planes_(size_t(v_.samples * v_.channels)),
        sums_(planes_),
        dots_(planes_),
        scales_(planes_),
        slopes_(planes_),
        rests_(planes_) {}

  std::tuple<Tensor, Tensor, Tensor> run() {
    if (v_.by_columns) by_columns();
    else by_cells();
    std::vector<double> grad_weight(size_t(v_.channels)), grad_bias(grad_weight.size());
    for (size_t p = 0; p < planes_; ++p) {
      size_t c = p % grad_bias.size();
      grad_weight[c] += dots_[p] * double(rstds_[v_.cell_of(int64_t(p))]);
      grad_bias[c] += sums_[p];
    }
    return {grad_input_, to_tensor<T>(grad_weight), to_tensor<T>(grad_bias)};
  }

 private:
  void by_cells() {
    for_each_cell(v_, [&](int64_t cell) {
      for_each_plane(v_, cell, [&](int64_t plane) {
        for_each_run(plane * v_.inner, v_.inner, [&](int64_t at, int64_t n) {
          T sum, dot;
          loops<T>().grad_sums(g_.read(at, n), x_.read(at, n), means_[cell], n, &sum, &dot);
          sums_[size_t(plane)] += double(sum);
          dots_[size_t(plane)] += double(dot);
        });
      });
      set_change(cell);
      for_each_plane(v_, cell, [&](int64_t plane) { change(plane); });
    });
  }

  void by_columns() {
    std::vector<T> mean_of_plane(planes_);
    for (size_t p = 0; p < planes_; ++p) mean_of_plane[p] = means_[v_.cell_of(int64_t(p))];
    ColumnSums<T> parts = column_grad_sums<T>(v_, g_, x_, mean_of_plane);
    for_each_cell(v_, [&](int64_t cell) {
      for_each_plane(v_, cell, [&](int64_t plane) {
        parts.for_each_part(plane, [&](int64_t block, int64_t c) {
          sums_[size_t(plane)] += double(parts.of(block, 0)[c]);
          dots_[size_t(plane)] += double(parts.of(block, 1)[c]);
        });
      });
      set_change(cell);
    });
    for_each_rows(v_, [&](int64_t sample, int64_t at, int64_t rows) {
      size_t first = size_t(sample * v_.channels);
      if (training_)
        change_loops_.column_combine(gradient_.at(at), in_.at(at), &scales_[first], &slopes_[first],
                                     &rests_[first], out_.at(at), rows, v_.channels);
      else
        change_loops_.column_affine(gradient_.at(at), &scales_[first], &rests_[first], out_.at(at),
                                    rows, v_.channels);
    });
  }

  double scale_of(int64_t cell, int64_t plane) const {
    return double(rstds_[cell]) * (weight_ ? double(weight_[plane % v_.channels]) : 1.0);
  }
  // The statistics give back what their sums over the cell say, by way of each plane's scale.
  void set_change(int64_t cell) {
    double r = double(rstds_[cell]), count = double(v_.numel_of_cell()), sum = 0, dot = 0;
    for_each_plane(v_, cell, [&](int64_t plane) {
      double scale = scale_of(cell, plane);
      sum += scale * sums_[size_t(plane)];
      dot += scale * dots_[size_t(plane)];
    });
    double slope = training_ ? -r * r * dot / count : 0.0;
    double rest = training_ ? -sum / count - slope * double(means_[cell]) : 0.0;
    for_each_plane(v_, cell, [&](int64_t plane) {
      scales_[size_t(plane)] = T(scale_of(cell, plane));
      slopes_[size_t(plane)] = T(slope);
      rests_[size_t(plane)] = T(rest);
    });
  }
  void change(int64_t plane) const {
    T scale = scales_[size_t(plane)], slope = slopes_[size_t(plane)], rest = rests_[size_t(plane)];
    int64_t at = plane * v_.inner, n = v_.inner;
    if (training_)
      change_loops_.combine(gradient_.at(at), in_.at(at), scale, slope, rest, out_.at(at), n);
    else change_loops_.affine(gradient_.at(at), scale, rest, out_.at(at), n);
  }

  const ChannelView& v_;
  Tensor grad_input_;
  Staged<T, 0> x_;
  Staged<T, 1> g_;
  Elements in_, gradient_, out_;
  const ChangeLoops<T>& change_loops_;
  const T *weight_, *means_, *rstds_;
  bool training_;
  size_t planes_;
  std::vector<double> sums_, dots_;         // of each plane: of grad, of grad * (input - mean)
  std::vector<T> scales_, slopes_, rests_;  // grad_input = scale grad + slope input + rest
};

}  // namespace

void channel_norm_cpu(const Tensor& input, const ChannelView& v, const Tensor& weight,
                      const Tensor& bias, bool training, double eps, const Tensor& mean,
                      const Tensor& var, const Tensor& rstd, const Tensor& output) {
  by_type(compute_dtype(input.dtype()), [&]<class T>(Tag<T>) {
    ChannelNorm<T>(input, v, weight, bias, eps, mean, var, rstd, output).run(training);
  });
}

std::tuple<Tensor, Tensor, Tensor> channel_norm_backward_cpu(const Tensor& grad,
                                                             const Tensor& input,
                                                             const ChannelView& v,
                                                             const Tensor& mean, const Tensor& rstd,
                                                             const Tensor& weight, bool training) {
  return by_type(compute_dtype(input.dtype()), [&]<class T>(Tag<T>) {
    return ChannelNormBackward<T>(grad, input, v, mean, rstd, weight, training).run();
  });
}

}  // namespace rushlight
