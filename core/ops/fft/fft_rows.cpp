// Owns the ways in which a plan transforms contiguous rows: side by side, each one split into
// columns and rows, or by Bluestein's convolution.
#include "core/ops/fft/fft_rows.h"

#include <algorithm>

#include "core/base/ceil_div.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(FftLoops, fft_loops)

template <class T>
const FftLoopsOf<T>& fft_loops() {
  return active_of<T>(fft_loops_sets);
}
template const FftLoopsOf<float>& fft_loops();
template const FftLoopsOf<double>& fft_loops();

template <class T>
bool FftRows<T>::by_columns(const FftPlan<T>& plan, int64_t count) {
  if (!plan.has_split || !plan.has_columns) return plan.has_columns;
  constexpr int64_t lanes = 64 / int64_t(sizeof(T));
  double columns = plan.columns_cost, split = plan.split_cost;
  if (plan.half_turns) {  // the step between pairs and halves
    columns += 6 * double(plan.n);
    split += double(plan.n);
  }
  return double(ceil_div(count, lanes)) * columns < double(count) * split;
}

template <class T>
int64_t FftRows<T>::group(const FftPlan<T>& plan, int64_t count) {
  const FftPlan<T>& runs = plan.padded ? *plan.padded : plan;
  return by_columns(runs, count) ? fft_loops<T>().lanes : 1;
}

template <class T>
size_t FftRows<T>::scratch_bytes(int64_t count) const {
  const auto& k = fft_loops<T>();
  int64_t pairs = 0;
  if (by_columns_) pairs = k.scratch(plan_.n);
  else if (plan_.has_split && plan_.n < kFftLong)
    pairs = plan_.n + k.scratch(std::max(plan_.split.first.n, plan_.split.second.n));
  else if (plan_.padded) pairs = plan_.padded->n * group(plan_, count);
  return size_t(pairs) * 2 * sizeof(T);
}

template <class T>
FftRows<T>::FftRows(const FftPlan<T>& plan, int64_t count)
    : plan_(plan),
      by_columns_(by_columns(plan, count)),
      padded_(plan.padded ? std::make_unique<FftRows>(*plan.padded, count) : nullptr),
      scratch_(scratch_bytes(count)) {}

template <class T>
void FftRows<T>::run(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                     int64_t count) {
  if (by_columns_) return run_columns(scale, in, in_stride, out, out_stride, count);
  if (padded_) return run_chirp(scale, in, in_stride, out, out_stride, count);
  for (int64_t i = 0; i < count; ++i) {
    const T* from = in + i * 2 * in_stride;
    T* to = out + i * 2 * out_stride;
    if (plan_.has_split) {
      run_split(scale, from, to);
    } else {  // one number
      T re = from[0], im = from[1];
      to[0] = re * scale;
      to[1] = im * scale;
    }
  }
}

template <class T>
void FftRows<T>::run_columns(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                             int64_t count) {
  const auto& k = fft_loops<T>();
  T* scratch = static_cast<T*>(scratch_.data());
  if (has_square_rows())
    return k.rows(plan_.columns, plan_.inverse, scale, in, in_stride, out, out_stride, count,
                  scratch);
  FftLaneOffsets from{}, to{};
  for (int64_t l = 0; l < count; ++l) {
    from[size_t(l)] = l * in_stride;
    to[size_t(l)] = l * out_stride;
  }
  T block[kFftMostLanes * kFftMostLanes];
  gather_columns(in, from, 1, 2, plan_.n, count, k.lanes, block);
  k.columns(plan_.columns, plan_.inverse, scale, block, k.lanes, block, k.lanes, scratch);
  scatter_columns(block, k.lanes, 2, plan_.n, count, out, to, 1);
}

template <class T>
bool FftRows<T>::run_to_half(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                             int64_t count) {
  if (!has_square_rows()) return false;
  fft_loops<T>().rows_to_half(plan_.columns, plan_.half_turns, scale, in, in_stride, out,
                              out_stride, count, static_cast<T*>(scratch_.data()));
  return true;
}
template <class T>
bool FftRows<T>::run_from_half(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                               int64_t count) {
  if (!has_square_rows()) return false;
  fft_loops<T>().half_to_rows(plan_.columns, plan_.half_turns, scale, in, in_stride, out,
                              out_stride, count, static_cast<T*>(scratch_.data()));
  return true;
}

template <class T>
void FftRows<T>::run_split(T scale, const T* in, T* out) {
  const auto& k = fft_loops<T>();
  const FftSplit<T>& split = plan_.split;
  int64_t n1 = split.first.n, n2 = split.second.n;
  auto blocks = [&](int64_t n) { return ceil_div(n, k.lanes); };
  if (plan_.n < kFftLong) {
    T* middle = static_cast<T*>(scratch_.data());
    T* scratch = middle + 2 * plan_.n;
    k.split_first(split, in, middle, 0, blocks(n2), scratch);
    k.split_second(split, scale, middle, out, 0, blocks(n1), scratch);
    return;
  }
  CpuBuffer whole(size_t(plan_.n) * 2 * sizeof(T));
  T* middle = static_cast<T*>(whole.data());
  // Two blocks at the end may share columns, so they stay on one thread.
  auto halves = [&](int64_t n, int64_t rows, auto&& half) {
    int64_t all = blocks(n), shared = std::max<int64_t>(1, n / k.lanes);
    parallel_for(0, shared, std::max<int64_t>(1, kFftGrain / (rows * k.lanes)),
                 [&](int64_t begin, int64_t end) {
                   CpuBuffer scratch(size_t(k.scratch(rows)) * 2 * sizeof(T));
                   half(begin, end == shared ? all : end, static_cast<T*>(scratch.data()));
                 });
  };
  halves(n2, n1, [&](int64_t begin, int64_t end, T* scratch) {
    k.split_first(split, in, middle, begin, end, scratch);
  });
  halves(n1, n2, [&](int64_t begin, int64_t end, T* scratch) {
    k.split_second(split, scale, middle, out, begin, end, scratch);
  });
}

// The transform is chirp[k] * sum over j of (x[j] chirp[j]) conj(chirp[k - j]): a convolution.
template <class T>
void FftRows<T>::run_chirp(T scale, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                           int64_t count) {
  const auto& k = fft_loops<T>();
  int64_t n = plan_.n, m = plan_.padded->n;
  T* rows = static_cast<T*>(scratch_.data());
  for (int64_t i = 0; i < count; ++i) {
    T* row = rows + i * 2 * m;
    k.multiply(FftMultiply::plain, in + i * 2 * in_stride, plan_.chirp, T(1), row, n);
    std::fill(row + 2 * n, row + 2 * m, T(0));
  }
  padded_->run(T(1), rows, m, rows, m, count);
  for (int64_t i = 0; i < count; ++i) {
    T* row = rows + i * 2 * m;
    // An inverse transform is the conjugate of a forward one of conjugates.
    k.multiply(FftMultiply::conjugate_result, row, plan_.spectrum, T(1), row, m);
  }
  padded_->run(T(1), rows, m, rows, m, count);
  for (int64_t i = 0; i < count; ++i)
    k.multiply(FftMultiply::conjugate_input, rows + i * 2 * m, plan_.chirp, scale,
               out + i * 2 * out_stride, n);
}

template class FftRows<float>;
template class FftRows<double>;

}  // namespace rushlight
