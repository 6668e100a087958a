// Defines sorting and searching on the CPU.
#include <algorithm>
#include <numeric>

#include "core/device/threads.h"
#include "core/ops/search.h"
#include "core/ops/sort/sort.h"
#include "core/ops/sort/sort_row.h"
#include "core/tensor/dims.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

constexpr int64_t kTogether = 8;  // values that are searched for side by side

template <class T>
T to_comparable(T value) {
  return value;
}
float to_comparable(Half value) { return to_float(value); }
float to_comparable(BFloat16 value) { return to_float(value); }

// The rows of a tensor along a dim, and results with `keep` elements for each.
struct Rows {
  Tensor input;
  Sorted results;
  Shape outer, steps, to_steps;  // the other dims: sizes, strides of the input and of the results
  int64_t length = 1, stride = 1, to_stride = 1, count, grain;

  Rows(const Tensor& tensor, int64_t dim, int64_t keep)
      : input(tensor), outer(tensor.sizes()), steps(tensor.strides()) {
    results = empty_sorted(tensor, dim, keep);
    to_steps = results.values.strides();
    if (tensor.dim()) {
      length = take(outer, dim);
      stride = take(steps, dim);
      to_stride = take(to_steps, dim);
    }
    count = checked_numel(outer);
    grain = 4096 / length + 1;
  }

  const void* row(const Odometer<2>& at) const { return start(input, at.at(0)); }
  // Writes the elements at these places, and the places.
  void write(const Odometer<2>& at, std::span<const Ranked> elements) const {
    const char* from = start(input, at.at(0));
    char* values = start(results.values, at.at(1));
    int64_t* places = results.indices.data<int64_t>() + at.at(1);
    auto n = int64_t(elements.size());
    for (int64_t i = 0; i < n; ++i) places[i * to_stride] = elements[size_t(i)].place;
    visit_item(int64_t(input.itemsize()), [&]<class T>(Tag<T>) {
      for (int64_t i = 0; i < n; ++i)
        reinterpret_cast<T*>(values)[i * to_stride] =
            reinterpret_cast<const T*>(from)[elements[size_t(i)].place * stride];
    });
  }

 private:
  static char* start(const Tensor& tensor, int64_t element) {
    return tensor.data<char>() + element * int64_t(tensor.itemsize());
  }
  static int64_t take(Shape& shape, int64_t dim) {
    int64_t item = shape[size_t(dim)];
    shape.erase(size_t(dim));
    return item;
  }
};

}  // namespace

Sorted sort_rows_cpu(const Tensor& input, int64_t dim, int64_t keep, bool descending) {
  Rows rows(input, dim, keep);
  parallel_for(0, rows.count, rows.grain, [&](int64_t begin, int64_t end) {
    RowSorter sorter(input.dtype(), rows.length, rows.stride, descending);
    Odometer<2> at(rows.outer, {rows.steps, rows.to_steps}, begin);
    for (int64_t r = begin; r < end; ++r, at.next())
      rows.write(at, sorter.first(rows.row(at), keep));
  });
  return rows.results;
}

Sorted rows_at_ranks_cpu(const Tensor& input, const Tensor& ranks, int64_t dim) {
  int64_t many = ranks.size(dim), rank_stride = ranks.stride(dim);
  Rows rows(input, dim, many);
  Shape rank_steps = ranks.strides();
  rank_steps.erase(size_t(dim));
  parallel_for(0, rows.count, rows.grain, [&](int64_t begin, int64_t end) {
    RowSorter sorter(input.dtype(), rows.length, rows.stride, false);
    Odometer<2> at(rows.outer, {rows.steps, rows.to_steps}, begin);
    Odometer<1> rank_at(rows.outer, {rank_steps}, begin);
    std::vector<int64_t> wanted(static_cast<size_t>(many)), order(wanted), sorted(wanted);
    std::vector<Ranked> found(wanted.size()), elements(wanted.size());
    for (int64_t r = begin; r < end; ++r, at.next(), rank_at.next()) {
      const int64_t* rank = ranks.data<int64_t>() + rank_at.at(0);
      for (size_t i = 0; i < wanted.size(); ++i)
        wanted[i] = std::clamp<int64_t>(rank[int64_t(i) * rank_stride], 0, rows.length - 1);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(),
                [&](int64_t a, int64_t b) { return wanted[size_t(a)] < wanted[size_t(b)]; });
      for (size_t i = 0; i < order.size(); ++i) sorted[i] = wanted[size_t(order[i])];
      sorter.at_ranks(rows.row(at), sorted, found.data());
      for (size_t i = 0; i < order.size(); ++i) elements[size_t(order[i])] = found[i];
      rows.write(at, elements);
    }
  });
  return rows.results;
}

Sorted modes_cpu(const Tensor& input, int64_t dim) {
  Rows rows(input, dim, 1);
  parallel_for(0, rows.count, rows.grain, [&](int64_t begin, int64_t end) {
    RowSorter sorter(input.dtype(), rows.length, rows.stride, false);
    Odometer<2> at(rows.outer, {rows.steps, rows.to_steps}, begin);
    for (int64_t r = begin; r < end; ++r, at.next()) {
      Ranked mode = sorter.mode(rows.row(at));
      rows.write(at, std::span(&mode, 1));
    }
  });
  return rows.results;
}

void search_rows_cpu(const Tensor& places, const Tensor& sorted, const Tensor& values, bool right) {
  bool one_row = sorted.dim() == 1;
  int64_t length = sorted.size(-1), width = one_row ? values.numel() : values.size(-1);
  int64_t* to = places.data<int64_t>();
  visit_dtype(values.dtype(), [&]<class T>(Tag<T>) {
    if constexpr (!std::is_same_v<T, std::complex<float>> &&
                  !std::is_same_v<T, std::complex<double>>) {
      const T *from = values.data<T>(), *first = sorted.data<T>();
      // Finds the places of values i to i + many - 1.
      auto search = [=]<int64_t many>(std::integral_constant<int64_t, many>, int64_t i) {
        std::array<const T*, many> rows;
        std::array<decltype(to_comparable(*from)), many> wanted;
        for (int64_t k = 0; k < many; ++k) {
          rows[size_t(k)] = first + (one_row ? 0 : (i + k) / width * length);
          wanted[size_t(k)] = to_comparable(from[i + k]);
        }
        // A NaN is behind every number.
        auto places = right ? count_first<many, T>(
                                  rows, length,
                                  [&](T x, size_t k) { return !(to_comparable(x) > wanted[k]); })
                            : count_first<many, T>(rows, length, [&](T x, size_t k) {
                                return !(to_comparable(x) >= wanted[k]);
                              });
        std::copy_n(places.begin(), many, to + i);
      };
      parallel_for(0, values.numel(), 1024, [&](int64_t begin, int64_t end) {
        int64_t i = begin;
        for (; i + kTogether <= end; i += kTogether)
          search(std::integral_constant<int64_t, kTogether>(), i);
        for (; i < end; ++i) search(std::integral_constant<int64_t, 1>(), i);
      });
    }
  });
}

}  // namespace rushlight
