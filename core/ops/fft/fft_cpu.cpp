// Owns the walks of Fourier transforms over tensors: rows where the dim is the last one, columns
// side by side where it is not, and rows gathered from columns for what has no kernel for columns.
#include <algorithm>
#include <array>

#include "core/base/ceil_div.h"
#include "core/ops/fft/fft.h"
#include "core/ops/fft/fft_rows.h"
#include "core/ops/operands.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// `whole` gives all numbers of the transform of real ones, in rows.
enum class Kind { c2c, r2c, c2r, whole };

// A transform of whatever kind. Strides of rows count elements of T.
template <class T>
class Transform {
 public:
  Transform(Kind kind, int64_t n, bool inverse, double scale)
      : kind_(kind),
        n_(n),
        inverse_(inverse),
        scale_(T(scale)),
        halves_(kind != Kind::c2c && n % 2 == 0) {
    bool backwards = inverse && !(halves_ && kind == Kind::whole);
    plan_ = halves_ ? fft_plan<T>(n / 2, backwards, true) : fft_plan<T>(n, backwards);
  }

  // Elements of T in a row.
  int64_t in_width() const { return from_real() ? n_ : width(kind_ == Kind::c2r); }
  int64_t out_width() const { return kind_ == Kind::c2r ? n_ : width(kind_ == Kind::r2c); }
  // How many elements, of how many T.
  int64_t in_item() const { return from_real() ? 1 : 2; }
  int64_t out_item() const { return kind_ == Kind::c2r ? 1 : 2; }
  int64_t in_length() const { return in_width() / in_item(); }
  int64_t out_length() const { return out_width() / out_item(); }
  const FftPlan<T>& plan() const { return *plan_; }

  // Whether it has kernels for columns side by side.
  bool has_columns() const { return plan_->has_columns && (kind_ == Kind::c2c || halves_); }
  // Strides count elements here.
  void run_columns(const T* in, int64_t in_stride, T* out, int64_t out_stride, T* scratch) const {
    const auto& k = fft_loops<T>();
    const auto& columns = plan_->columns;
    if (kind_ == Kind::c2c)
      k.columns(columns, inverse_, scale_, in, in_stride, out, out_stride, scratch);
    else if (kind_ == Kind::r2c)
      k.columns_to_half(columns, plan_->half_turns, scale_, in, in_stride, out, out_stride,
                        scratch);
    else
      k.half_to_columns(columns, plan_->half_turns, scale_, in, in_stride, out, out_stride,
                        scratch);
  }

  void run(FftRows<T>& rows, const T* in, int64_t in_stride, T* out, int64_t out_stride,
           int64_t count) const {
    if (kind_ == Kind::c2c) return rows.run(scale_, in, in_stride / 2, out, out_stride / 2, count);
    if (!halves_) return run_odd(rows, in, in_stride, out, out_stride, count);
    const auto& k = fft_loops<T>();
    int64_t m = n_ / 2;
    // Long rows, of which there are few, on several threads.
    auto on_pairs = [&](auto&& part) { parallel_for(0, m / 2 + 1, kFftLong / 4, part); };
    if (from_real()) {
      bool is_half = rows.run_to_half(scale_, in, in_stride / 2, out, out_stride / 2, count);
      CpuBuffer buffer(size_t(is_half ? 0 : count * n_) * sizeof(T));
      T* pairs = static_cast<T*>(buffer.data());
      if (!is_half) rows.run(T(1), in, in_stride / 2, pairs, m, count);
      for (int64_t i = 0; i < count; ++i) {
        T* row = out + i * out_stride;
        if (!is_half)
          on_pairs([&](int64_t begin, int64_t end) {
            k.pairs_to_half(pairs + i * n_, plan_->half_turns, scale_, row, m, begin, end);
          });
        if (kind_ == Kind::whole) k.complete(row, inverse_, n_);
      }
      return;
    }
    if (rows.run_from_half(scale_, in, in_stride / 2, out, out_stride / 2, count)) return;
    CpuBuffer buffer(size_t(count * n_) * sizeof(T));
    T* pairs = static_cast<T*>(buffer.data());
    for (int64_t i = 0; i < count; ++i)
      on_pairs([&](int64_t begin, int64_t end) {
        k.half_to_pairs(in + i * in_stride, plan_->half_turns, pairs + i * n_, m, begin, end);
      });
    rows.run(scale_, pairs, m, out, out_stride / 2, count);
  }

 private:
  bool from_real() const { return kind_ == Kind::r2c || kind_ == Kind::whole; }
  int64_t width(bool half) const { return 2 * (half ? n_ / 2 + 1 : n_); }

  // By a transform of complex numbers.
  void run_odd(FftRows<T>& rows, const T* in, int64_t in_stride, T* out, int64_t out_stride,
               int64_t count) const {
    CpuBuffer buffer(size_t(count * 2 * n_) * sizeof(T));
    T* all = static_cast<T*>(buffer.data());
    for (int64_t i = 0; i < count; ++i) {
      const T* from = in + i * in_stride;
      T* row = all + i * 2 * n_;
      for (int64_t j = 0; j < n_; ++j) {
        // A row of c2r has the first n / 2 + 1 numbers; the others are conjugates in reverse.
        bool given = j <= n_ / 2;
        int64_t at = 2 * (given ? j : n_ - j);
        row[2 * j] = from_real() ? from[j] : from[at];
        row[2 * j + 1] = from_real() || j == 0 ? T(0) : given ? from[at + 1] : -from[at + 1];
      }
    }
    rows.run(scale_, all, n_, all, n_, count);
    for (int64_t i = 0; i < count; ++i) {
      const T* row = all + i * 2 * n_;
      T* to = out + i * out_stride;
      if (from_real()) std::copy(row, row + out_width(), to);
      else
        for (int64_t j = 0; j < n_; ++j) to[j] = row[2 * j];
    }
  }

  Kind kind_;
  int64_t n_;
  bool inverse_;
  T scale_;
  bool halves_;  // pairs of real numbers are transformed as complex ones
  std::shared_ptr<const FftPlan<T>> plan_;
};

template <class T>
void transform_rows(const Transform<T>& transform, const T* in, T* out, int64_t count) {
  int64_t in_width = transform.in_width(), out_width = transform.out_width();
  for_each_group(transform.plan(), count, [&](FftRows<T>& rows, int64_t first, int64_t number) {
    transform.run(rows, in + first * in_width, in_width, out + first * out_width, out_width,
                  number);
  });
}

// Gathers a few neighboring columns into rows, and scatters their transforms.
template <class T>
void transform_panels(const Transform<T>& transform, const T* in, T* out, AroundDim around) {
  constexpr int64_t kColumns = 16;
  int64_t in_item = transform.in_item() * int64_t(sizeof(T));
  int64_t out_item = transform.out_item() * int64_t(sizeof(T));
  int64_t in_bytes = transform.in_width() * int64_t(sizeof(T));
  int64_t out_bytes = transform.out_width() * int64_t(sizeof(T));
  auto copy = [](int64_t columns, int64_t rows, int64_t item, auto* to, Shape to_strides,
                 auto* from, Shape from_strides) {
    const Shape sizes{columns, rows};
    copy_strided(sizes, item, reinterpret_cast<char*>(to), to_strides,
                 reinterpret_cast<const char*>(from), from_strides);
  };
  int64_t panels = ceil_div(around.inner, kColumns);
  int64_t grain =
      std::max<int64_t>(1, kFftGrain / (around.length * std::min(kColumns, around.inner)));
  parallel_for(0, around.outer * panels, grain, [&](int64_t begin, int64_t end) {
    CpuBuffer in_rows(size_t(kColumns * in_bytes)), out_rows(size_t(kColumns * out_bytes));
    T* from = static_cast<T*>(in_rows.data());
    T* to = static_cast<T*>(out_rows.data());
    FftRows<T> rows(transform.plan(), kColumns);
    int64_t group = FftRows<T>::group(transform.plan(), kColumns);
    for (int64_t i = begin; i < end; ++i) {
      int64_t slice = i / panels, column = i % panels * kColumns;
      int64_t columns = std::min(kColumns, around.inner - column);
      copy(columns, in_bytes / in_item, in_item, from, {in_bytes, in_item},
           reinterpret_cast<const char*>(in) + slice * around.inner * in_bytes + column * in_item,
           {in_item, around.inner * in_item});
      for (int64_t c = 0; c < columns; c += group)
        transform.run(rows, from + c * transform.in_width(), transform.in_width(),
                      to + c * transform.out_width(), transform.out_width(),
                      std::min(group, columns - c));
      copy(columns, out_bytes / out_item, out_item,
           reinterpret_cast<char*>(out) + slice * around.inner * out_bytes + column * out_item,
           {out_item, around.inner * out_item}, to, {out_bytes, out_item});
    }
  });
}

// Columns in blocks of as many as vectors have lanes. What is left over is gathered, across slices
// where they have few columns.
template <class T>
void transform_columns(const Transform<T>& transform, const T* in, T* out, AroundDim around) {
  int64_t lanes = fft_loops<T>().lanes, inner = around.inner;
  int64_t in_item = transform.in_item(), out_item = transform.out_item();
  int64_t in_slice = transform.in_length() * inner, out_slice = transform.out_length() * inner;
  int64_t whole = inner / lanes, left = inner % lanes;
  int64_t grain = std::max<int64_t>(1, kFftGrain / (around.length * lanes));
  auto on_threads = [&](int64_t blocks, auto&& block) {
    parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
      CpuBuffer scratch(size_t(fft_loops<T>().scratch(transform.plan().n)) * 2 * sizeof(T));
      for (int64_t i = begin; i < end; ++i) block(i, static_cast<T*>(scratch.data()));
    });
  };
  on_threads(around.outer * whole, [&](int64_t i, T* scratch) {
    int64_t slice = i / whole, column = i % whole * lanes;
    transform.run_columns(in + (slice * in_slice + column) * in_item, inner,
                          out + (slice * out_slice + column) * out_item, inner, scratch);
  });
  int64_t columns = around.outer * left;
  on_threads(ceil_div(columns, lanes), [&](int64_t i, T* scratch) {
    int64_t count = std::min(lanes, columns - i * lanes);
    FftLaneOffsets from{}, to{};
    for (int64_t l = 0; l < count; ++l) {
      int64_t c = i * lanes + l, column = whole * lanes + c % left;
      from[size_t(l)] = c / left * in_slice + column;
      to[size_t(l)] = c / left * out_slice + column;
    }
    int64_t in_count = transform.in_width() * lanes, out_count = transform.out_width() * lanes;
    CpuBuffer blocks(size_t(in_count + out_count) * sizeof(T));
    T* in_block = static_cast<T*>(blocks.data());
    T* out_block = in_block + in_count;
    gather_columns(in, from, inner, in_item, transform.in_length(), count, lanes, in_block);
    transform.run_columns(in_block, lanes, out_block, lanes, scratch);
    scatter_columns(out_block, lanes, out_item, transform.out_length(), count, out, to, inner);
  });
}

template <class T>
void transform_dim(Kind kind, const Tensor& in, const Tensor& out, int64_t dim, bool inverse,
                   double scale) {
  AroundDim shape(kind == Kind::r2c ? in.sizes() : out.sizes(), dim);
  if (in.numel() == 0 || out.numel() == 0) return;
  const T* from = in.data<T>();
  T* to = out.data<T>();
  Transform<T> transform(kind, shape.length, inverse, scale);
  if (shape.inner == 1) transform_rows(transform, from, to, shape.outer);
  else if (transform.has_columns()) transform_columns(transform, from, to, shape);
  else transform_panels(transform, from, to, shape);
}

}  // namespace

void fft_c2c_cpu(const Tensor& in, const Tensor& out, ShapeRef dims, bool inverse, double scale) {
  by_type(real_dtype(out.dtype()), [&]<class T>(Tag<T>) {
    bool is_real = !is_complex(in.dtype()), by_rows = out.stride(dims.back()) == 1;
    if (is_real && !by_rows) copy_into(out, in);
    for (size_t i = dims.size(); i-- > 0;) {
      bool first = i + 1 == dims.size();
      Kind kind = first && is_real && by_rows ? Kind::whole : Kind::c2c;
      transform_dim<T>(kind, first && (by_rows || !is_real) ? in : out, out, dims[i], inverse,
                       i == 0 ? scale : 1);
    }
  });
}

void fft_r2c_cpu(const Tensor& in, const Tensor& out, ShapeRef dims, double scale) {
  by_type(real_dtype(out.dtype()), [&]<class T>(Tag<T>) {
    transform_dim<T>(Kind::r2c, in, out, dims.back(), false, dims.size() == 1 ? scale : 1);
  });
  if (dims.size() > 1) fft_c2c_cpu(out, out, dims.first(dims.size() - 1), false, scale);
}

void fft_c2r_cpu(const Tensor& in, const Tensor& out, ShapeRef dims, double scale) {
  Tensor half = in;
  if (dims.size() > 1) {
    half = empty(in.sizes(), in.dtype());
    fft_c2c_cpu(in, half, dims.first(dims.size() - 1), true, 1);
  }
  by_type(real_dtype(out.dtype()), [&]<class T>(Tag<T>) {
    transform_dim<T>(Kind::c2r, half, out, dims.back(), true, scale);
  });
}

}  // namespace rushlight
