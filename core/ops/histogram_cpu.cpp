// Defines histograms on the CPU: one pass over the data, with a table of bins for each thread.
#include <algorithm>

#include "core/base/ceil_div.h"
#include "core/device/threads.h"
#include "core/ops/histogram.h"
#include "core/ops/search.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 1 << 15;
constexpr int64_t kShares = 8;  // tables of weights, whatever the number of threads

// The edges of one dim.
template <class T>
struct Axis {
  const T* edges;
  int64_t bins;

  // The bin of a value, or -1.
  template <Binning binning>
  int64_t find(T value) const {
    T first = edges[0], last = edges[bins];
    if (!(value >= first && value <= last)) return -1;
    if constexpr (binning == Binning::search) {
      int64_t bin =
          count_first<1, T>({edges}, bins + 1, [=](T edge, size_t) { return edge <= value; })[0] -
          1;
      return std::clamp<int64_t>(bin, 0, bins - 1);
    } else {
      auto bin = int64_t((value - first) / (last - first) * T(bins));
      if constexpr (binning == Binning::even) {
        int64_t from = std::max<int64_t>(bin - 1, 0), to = std::min(bin + 2, bins + 1);
        bin = std::upper_bound(edges + from, edges + to, value) - edges - 1;
      }
      return std::clamp<int64_t>(bin, 0, bins - 1);
    }
  }
};

template <class T, Binning binning, class Add>
void count_rows(const T* x, std::span<const Axis<T>> axes, int64_t begin, int64_t end, Add add) {
  if (axes.size() == 1) {
    const Axis<T> axis = axes[0];
    for (int64_t i = begin; i < end; ++i)
      if (int64_t bin = axis.template find<binning>(x[i]); bin >= 0) add(bin, i);
    return;
  }
  auto dims = int64_t(axes.size());
  for (int64_t i = begin; i < end; ++i) {
    int64_t place = 0;
    for (int64_t d = 0; d < dims && place >= 0; ++d) {
      const Axis<T>& axis = axes[size_t(d)];
      int64_t bin = axis.template find<binning>(x[i * dims + d]);
      place = bin < 0 ? -1 : place * axis.bins + bin;
    }
    if (place >= 0) add(place, i);
  }
}

// Fills tables of `bins` for shares of the rows and adds them up in order.
template <class T, class Entry, Binning binning, class Weight>
void fill(const T* x, int64_t rows, std::span<const Axis<T>> axes, int64_t bins, Weight weight,
          Entry* to) {
  int64_t shares = rows > kGrain && bins < rows ? kShares : 1, share = ceil_div(rows, shares);
  std::vector<Entry> tables(size_t(shares * bins));
  parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      Entry* table = tables.data() + s * bins;
      count_rows<T, binning>(x, axes, s * share, std::min(rows, (s + 1) * share),
                             [&](int64_t bin, int64_t i) { table[bin] += weight(i); });
    }
  });
  for (int64_t bin = 0; bin < bins; ++bin)
    for (int64_t s = 0; s < shares; ++s) to[bin] += tables[size_t(s * bins + bin)];
}

}  // namespace

Tensor histogram_cpu(const Tensor& input, TensorList edges, const Tensor& weight, Binning binning) {
  int64_t bins = 1, rows = input.size(0);
  for (const Tensor& e : edges) bins *= e.numel() - 1;
  Tensor result = empty(Shape{bins}, weight.defined() ? DType::float64 : DType::int64);
  auto run = [&]<class T, Binning how>(Tag<T>, std::integral_constant<Binning, how>) {
    std::vector<Axis<T>> axes;
    for (const Tensor& e : edges) axes.push_back({e.data<T>(), e.numel() - 1});
    std::span<const Axis<T>> all(axes);
    const T* x = input.data<T>();
    if (weight.defined()) {
      const T* w = weight.data<T>();
      std::fill_n(result.data<double>(), bins, 0.0);
      fill<T, double, how>(
          x, rows, all, bins, [w](int64_t i) { return double(w[i]); }, result.data<double>());
    } else {
      std::fill_n(result.data<int64_t>(), bins, 0);
      fill<T, int64_t, how>(
          x, rows, all, bins, [](int64_t) { return int64_t(1); }, result.data<int64_t>());
    }
  };
  auto by_binning = [&]<class T>(Tag<T> tag) {
    using enum Binning;
    if (binning == search) run(tag, std::integral_constant<Binning, search>());
    else if (binning == even) run(tag, std::integral_constant<Binning, even>());
    else run(tag, std::integral_constant<Binning, even_unmended>());
  };
  if (input.dtype() == DType::float32) by_binning(Tag<float>{});
  else by_binning(Tag<double>{});
  return result;
}

}  // namespace rushlight
