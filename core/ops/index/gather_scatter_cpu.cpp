// Defines the kernels of gather and scatter for the CPU.
#include <optional>

#include "core/device/threads.h"
#include "core/ops/index/gather_scatter.h"
#include "core/ops/index/index.h"
#include "core/ops/index/visit_combination.h"
#include "core/ops/ops.h"
#include "core/tensor/dims.h"
#include "core/tensor/reduce.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 1 << 13;     // elements that are worth a thread
constexpr int64_t kTogether = 1 << 10;  // columns that are walked along dim together

// From one position of the index to the next, in elements of each tensor. Along dim self stays:
// there the index says by how much it is moved.
struct Steps {
  int64_t self, index, other;
};

// Positions of the index, as rows of columns.
template <class T>
struct Block {
  T* self;  // in front of the move along dim
  const int64_t* index;
  T* other;
  Steps row, column;
  int64_t rows, columns;
  int64_t dim_stride, dim_size;
  size_t dim;

  // Whether a row is moved by one place: then it is a run of self.
  bool has_rigid_rows() const { return column.index == 0 || columns == 1; }
  // Whether rows are runs of the index and of other, whose elements each go to their own place.
  bool is_flat() const {
    return dim_stride == 1 && column.self == 0 && column.index == 1 && column.other == 1;
  }
  int64_t checked(int64_t place) const {
    if (uint64_t(place) >= uint64_t(dim_size)) refuse(place);
    return place;
  }
  [[noreturn, gnu::cold]] void refuse(int64_t place) const {
    CHECK(false, "index ", place, " is out of bounds for dimension ", dim, " with size ", dim_size);
    __builtin_unreachable();
  }
};

// Calls f(element of self, element of other) for a block, in its order. The block is a copy, which
// stays in registers, since no write can reach it.
template <class T, class F>
void for_each_element(Block<T> block, F f) {
  auto loop = [=](int64_t dim_stride, Steps column) __attribute__((always_inline)) {
    T *self = block.self, *other = block.other;
    const int64_t* index = block.index;
    for (int64_t r = 0; r < block.rows; ++r) {
#pragma GCC unroll 4  // else the time hangs on where the loop lies in memory
      for (int64_t k = 0; k < block.columns; ++k)
        f(self[block.checked(index[k * column.index]) * dim_stride + k * column.self],
          other[k * column.other]);
      self += block.row.self;
      index += block.row.index;
      other += block.row.other;
    }
  };
  if (block.is_flat()) loop(1, {0, 1, 1});
  else loop(block.dim_stride, block.column);
}

// Calls f(self, its step, other, its step, count), in bytes, for the rigid rows of a block.
template <class T, class F>
void for_each_row(const Block<T>& block, F&& f) {
  constexpr int64_t kItem = sizeof(T);
  for (int64_t r = 0; r < block.rows; ++r) {
    int64_t place = block.checked(block.index[r * block.row.index]);
    f(reinterpret_cast<char*>(block.self + r * block.row.self + place * block.dim_stride),
      block.column.self * kItem, reinterpret_cast<char*>(block.other + r * block.row.other),
      block.column.other * kItem, block.columns);
  }
}

template <class T>
void combine_halves(const Block<T>& block, CombineAtLoop combine_at) {
  const Steps& column = block.column;
  const AtSteps steps{block.dim_stride, column.self, column.index, column.other};
  for (int64_t r = 0; r < block.rows; ++r) {
    const int64_t* index = block.index + r * block.row.index;
    int64_t done =
        combine_at(block.self + r * block.row.self, index, block.other + r * block.row.other, steps,
                   block.columns, block.dim_size);
    if (done < block.columns) block.refuse(index[done * column.index]);
  }
}

// Calls f(block) until all positions of the index were in one. Threads share what lies beside dim,
// so that positions which could meet come in order on one thread; when `free`, they may share dim.
template <class T, class F>
void for_each_block(const Tensor& self, size_t dim, const Tensor& index, const Tensor& other,
                    bool free, F&& f) {
  const Shape& sizes = index.sizes();
  const Tensor* lanes[] = {&self, &index, &other};
  // Columns run along the last dim, and rows along dim or the last but one. Dims of one element do
  // not count.
  std::optional<size_t> column_dim, row_dim;
  for (size_t d = sizes.size(); d-- > 0 && !row_dim;) {
    if (sizes[d] == 1) continue;
    if (!column_dim) column_dim = d;
    else if (d == dim || *column_dim == dim) row_dim = d;
  }
  Shape outer, strides[3];
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d == row_dim || d == column_dim) continue;
    outer.push_back(sizes[d]);
    for (int k = 0; k < 3; ++k) strides[k].push_back(d == dim ? 0 : lanes[k]->strides()[d]);
  }
  auto size = [&](std::optional<size_t> d) { return d ? sizes[*d] : 1; };
  auto steps = [&](std::optional<size_t> d) {
    if (!d) return Steps{};
    return Steps{*d == dim ? 0 : self.strides()[*d], index.strides()[*d], other.strides()[*d]};
  };
  int64_t rows = size(row_dim), columns = size(column_dim);
  // Threads share the rows or the columns, and walk the others whole.
  bool shares_columns = column_dim != dim || (free && columns > rows);
  int64_t shared = shares_columns ? columns : rows, most = shares_columns ? kTogether : rows;
  Steps step = steps(shares_columns ? column_dim : row_dim);
  int64_t count = checked_numel(outer) * shared;
  parallel_for(0, count, kGrain / (index.numel() / count) + 1, [&](int64_t begin, int64_t end) {
    Odometer<3> at(outer, {strides[0], strides[1], strides[2]}, begin / shared);
    for (int64_t i = begin, first = begin % shared; i < end;) {
      int64_t width = std::min({shared - first, end - i, most});
      f(Block<T>{self.data<T>() + at.at(0) + first * step.self,
                 index.data<int64_t>() + at.at(1) + first * step.index,
                 other.data<T>() + at.at(2) + first * step.other, steps(row_dim), steps(column_dim),
                 shares_columns ? rows : width, shares_columns ? width : columns,
                 self.strides()[dim], self.sizes()[dim], dim});
      i += width;
      first += width;
      if (first < shared) continue;
      first = 0;
      at.next();
    }
  });
}

}  // namespace

void gather_cpu(const Tensor& self, size_t d, const Tensor& places, const Tensor& out) {
  visit_item(int64_t(out.itemsize()), [&]<class T>(Tag<T>) {
    for_each_block<T>(self, d, places, out, true, [&](const Block<T>& block) {
      if (!block.has_rigid_rows())
        return for_each_element(block, [](const T& from, T& to) { to = from; });
      for_each_row(block, [](const char* from, int64_t step, char* to, int64_t to_step, int64_t n) {
        copy_run(to, to_step, from, step, sizeof(T), n);
      });
    });
  });
}

void scatter_cpu(const Tensor& self, size_t d, const Tensor& places, const Tensor& values,
                 Scatter how) {
  if (how == Scatter::write) {
    visit_item(int64_t(self.itemsize()), [&]<class T>(Tag<T>) {
      for_each_block<T>(self, d, places, values, false, [](const Block<T>& block) {
        for_each_element(block, [](T& to, const T& from) { to = from; });
      });
    });
    return;
  }
  CombineRun combine_run(how, self.dtype());
  const CombineAtLoop of_halves =
      is_half(self.dtype()) ? combine_halves_at(how, self.dtype()) : nullptr;
  visit_combination(how, self.dtype(), [&]<class Combine>(Combine combine) {
    using T = typename Combine::Type;
    for_each_block<T>(self, d, places, values, false, [&](const Block<T>& block) {
      if (block.has_rigid_rows() && block.column.self != 0) for_each_row(block, combine_run);
      else if (of_halves) combine_halves(block, of_halves);
      else for_each_element(block, [combine](T& to, const T& from) { to = combine(to, from); });
    });
  });
}

Tensor occurrences_cpu(const Tensor& numbers, int64_t length) {
  // Threads have a table each, where numbers are so many more that adding these up is little work.
  int64_t n = numbers.numel();
  int64_t parts = std::clamp<int64_t>(n / std::max(length, kGrain) / 4, 1, num_threads());
  Tensor tables = zeros(Shape{parts, length}, DType::int64);
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      int64_t* table = tables.data<int64_t>() + part * length;
      const int64_t* number = numbers.data<int64_t>() + n * part / parts;
      const int64_t* last = numbers.data<int64_t>() + n * (part + 1) / parts;
      for (; number != last; ++number) {
        int64_t place = *number;  // another thread may have written it after it was looked at
        if (uint64_t(place) >= uint64_t(length)) refuse_index(place, 0, length);
        ++table[place];
      }
    }
  });
  return parts == 1 ? reshape(tables, Shape{length})
                    : reduce(Reduction::sum, tables, DimSet(1), false, DType::int64);
}

}  // namespace rushlight
