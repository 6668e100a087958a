// Defines sorting and searching on the CPU.
#include <algorithm>
#include <bit>
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
bool to_comparable(const bool& value) { return reinterpret_cast<const uint8_t&>(value) != 0; }

// Where rows begin in the input and in the results, in elements.
struct RowStarts {
  int64_t from, to;
};

// The rows of a tensor along a dim, and results with `keep` elements for each.
struct Rows {
  Tensor input;
  Sorted results;
  Shape outer, steps, to_steps;  // the other dims: sizes, strides of the input and of the results
  int64_t length = 1, stride = 1, to_stride = 1, keep, count, grain;

  Rows(const Tensor& tensor, int64_t dim, int64_t keep)
      : input(tensor), outer(tensor.sizes()), steps(tensor.strides()), keep(keep) {
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

  // Whether rows are best sorted side by side, where of each the elements before `end` are wanted.
  // Long ones must not be few, and a few elements of theirs are found in other ways.
  bool are_short(int64_t end) const {
    if (count < kRowsTogether / 2) return length <= count * kShortRow / 12;
    if (end < length / 16) return length <= kShortRow / 4;
    if (end < length / 3 && count < kRowsTogether * 3 / 4) return length <= kShortRow / 2;
    return length <= kShortRow;
  }

  // Whether to sort them so is faster than to look for ranks in each.
  bool are_better_sorted() const { return length <= kShortRow / 4 && are_short(length); }

  const void* row(int64_t from) const {
    return input.data<char>() + from * int64_t(input.itemsize());
  }
  // Writes the elements at place(row, i) for i from 0 to below keep, and the places.
  template <class Place>
  void write(std::span<const RowStarts> rows, Place place) const {
    visit_item(int64_t(input.itemsize()), [&]<class T>(Tag<T>) {
      const T* elements = reinterpret_cast<const T*>(input.data<char>());
      T* values = reinterpret_cast<T*>(results.values.data<char>());
      int64_t* places = results.indices.data<int64_t>();
      for (size_t r = 0; r < rows.size(); ++r) {
        auto [from, to] = rows[r];
        for (int64_t i = 0; i < keep; ++i, to += to_stride) {
          int64_t at = place(int64_t(r), i);
          places[to] = at;
          values[to] = elements[from + at * stride];
        }
      }
    });
  }

 private:
  static int64_t take(Shape& shape, int64_t dim) {
    int64_t item = shape[size_t(dim)];
    shape.erase(size_t(dim));
    return item;
  }
};

// Calls f(first row, where rows begin, order) for groups of up to kRowsTogether rows, where
// order[rank * kRowsTogether + row] is the place of the element of that rank < `ranks`.
template <class F>
void for_short_rows(const Rows& rows, int64_t ranks, bool descending, F&& f) {
  auto sort = sort_loops().short_rows[int(rows.input.dtype())];
  parallel_for(0, rows.count, rows.grain, [&](int64_t begin, int64_t end) {
    std::array<RowStarts, kRowsTogether> starts;
    std::array<const void*, kRowsTogether> addresses;
    std::array<uint16_t, kShortRow * kRowsTogether> order;
    Odometer<2> at(rows.outer, {rows.steps, rows.to_steps}, begin);
    for (int64_t first = begin; first < end; first += kRowsTogether) {
      auto n = size_t(std::min(kRowsTogether, end - first));
      for (size_t r = 0; r < n; ++r, at.next()) {
        starts[r] = {at.at(0), at.at(1)};
        addresses[r] = rows.row(at.at(0));
      }
      std::fill(addresses.begin() + n, addresses.end(), addresses[0]);
      uint32_t unfinished =
          sort(addresses.data(), rows.stride, rows.length, ranks, descending, order.data());
      for (; unfinished != 0; unfinished &= unfinished - 1) {
        auto r = size_t(std::countr_zero(unfinished));
        RowSorter sorter(rows.input.dtype(), rows.length, rows.stride, descending);
        std::span<const uint64_t> first = sorter.first(addresses[r], ranks);
        for (size_t i = 0; i < first.size(); ++i) order[i * kRowsTogether + r] = uint16_t(first[i]);
      }
      f(first, std::span(starts).first(n), order.data());
    }
  });
}

// Writes one element of each short row, that of the rank rank_of(element), where element(rank) is
// one of the sorted row.
template <class F>
void write_of_sorted(const Rows& rows, F&& rank_of) {
  visit_dtype(rows.input.dtype(), [&]<class T>(Tag<T>) {
    for_short_rows(
        rows, rows.length, false,
        [&](int64_t, std::span<const RowStarts> starts, const uint16_t* order) {
          rows.write(starts, [&](int64_t row, int64_t) {
            const T* elements = static_cast<const T*>(rows.row(starts[size_t(row)].from));
            const uint16_t* places = order + row;
            int64_t rank = rank_of([elements, places, stride = rows.stride](int64_t rank) {
              return to_comparable(elements[places[rank * kRowsTogether] * stride]);
            });
            return places[rank * kRowsTogether];
          });
        });
  });
}

// Calls f(sorter, row, where it begins) for each row.
template <class F>
void for_long_rows(const Rows& rows, bool descending, F&& f) {
  parallel_for(0, rows.count, rows.grain, [&](int64_t begin, int64_t end) {
    RowSorter sorter(rows.input.dtype(), rows.length, rows.stride, descending);
    Odometer<2> at(rows.outer, {rows.steps, rows.to_steps}, begin);
    for (int64_t r = begin; r < end; ++r, at.next()) f(sorter, r, RowStarts{at.at(0), at.at(1)});
  });
}

}  // namespace

Sorted sort_rows_cpu(const Tensor& input, int64_t dim, int64_t keep, bool descending) {
  Rows rows(input, dim, keep);
  if (rows.are_short(keep))
    for_short_rows(rows, keep, descending,
                   [&](int64_t, std::span<const RowStarts> starts, const uint16_t* order) {
                     rows.write(starts, [=](int64_t row, int64_t i) {
                       return order[i * kRowsTogether + row];
                     });
                   });
  else
    for_long_rows(rows, descending, [&](RowSorter& sorter, int64_t, RowStarts start) {
      std::span<const uint64_t> first = sorter.first(rows.row(start.from), keep);
      rows.write({&start, 1}, [=](int64_t, int64_t i) { return int64_t(first[size_t(i)]); });
    });
  return rows.results;
}

Sorted rows_at_ranks_cpu(const Tensor& input, const Tensor& ranks, int64_t dim) {
  int64_t many = ranks.size(dim), rank_stride = ranks.stride(dim);
  Rows rows(input, dim, many);
  Shape rank_steps = ranks.strides();
  rank_steps.erase(size_t(dim));
  // Where the ranks of `n` rows from `first` on begin.
  auto ranks_of = [&](int64_t first, size_t n) {
    std::array<int64_t, kRowsTogether> starts;
    Odometer<1> at(rows.outer, {rank_steps}, first);
    for (size_t r = 0; r < n; ++r, at.next()) starts[r] = at.at(0);
    return starts;
  };
  auto rank = [wanted = ranks.data<int64_t>(), rank_stride, last = rows.length - 1](int64_t start,
                                                                                    int64_t i) {
    return std::clamp<int64_t>(wanted[start + i * rank_stride], 0, last);
  };
  if (rows.are_better_sorted())
    for_short_rows(rows, rows.length, false,
                   [&](int64_t first, std::span<const RowStarts> starts, const uint16_t* order) {
                     auto from = ranks_of(first, starts.size());
                     rows.write(starts, [&](int64_t row, int64_t i) {
                       return order[rank(from[size_t(row)], i) * kRowsTogether + row];
                     });
                   });
  else
    for_long_rows(rows, false, [&](RowSorter& sorter, int64_t row, RowStarts start) {
      int64_t from = ranks_of(row, 1)[0];
      if (many == 1) {
        const int64_t one = rank(from, 0);
        int64_t place;
        sorter.at_ranks(rows.row(start.from), {&one, 1}, &place);
        return rows.write({&start, 1}, [&](int64_t, int64_t) { return place; });
      }
      std::vector<int64_t> wanted(static_cast<size_t>(many)), order(wanted), sorted(wanted),
          found(wanted), places(wanted);
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = rank(from, int64_t(i));
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(),
                [&](int64_t a, int64_t b) { return wanted[size_t(a)] < wanted[size_t(b)]; });
      for (size_t i = 0; i < order.size(); ++i) sorted[i] = wanted[size_t(order[i])];
      sorter.at_ranks(rows.row(start.from), sorted, found.data());
      for (size_t i = 0; i < order.size(); ++i) places[size_t(order[i])] = found[i];
      rows.write({&start, 1}, [&](int64_t, int64_t i) { return places[size_t(i)]; });
    });
  return rows.results;
}

Sorted medians_cpu(const Tensor& input, int64_t dim, bool ignore_nan) {
  Rows rows(input, dim, 1);
  if (rows.are_better_sorted())
    write_of_sorted(rows, [&](auto element) {
      int64_t numbers = rows.length;
      while (numbers > 0 && !(element(numbers - 1) == element(numbers - 1))) --numbers;
      return median_rank(rows.length, numbers, ignore_nan);
    });
  else
    for_long_rows(rows, false, [&](RowSorter& sorter, int64_t, RowStarts start) {
      int64_t place = sorter.median(rows.row(start.from), ignore_nan);
      rows.write({&start, 1}, [=](int64_t, int64_t) { return place; });
    });
  return rows.results;
}

Sorted modes_cpu(const Tensor& input, int64_t dim) {
  Rows rows(input, dim, 1);
  if (rows.are_short(rows.length))
    write_of_sorted(rows, [&](auto element) {
      return end_of_longest_run(rows.length,
                                [=](int64_t rank) { return element(rank) == element(rank - 1); });
    });
  else
    for_long_rows(rows, false, [&](RowSorter& sorter, int64_t, RowStarts start) {
      int64_t place = sorter.mode(rows.row(start.from));
      rows.write({&start, 1}, [=](int64_t, int64_t) { return place; });
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
