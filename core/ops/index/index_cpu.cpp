// Defines the kernels of index tensors for the CPU.
#include "core/ops/index/index.h"

#include <cstring>
#include <numeric>
#include <optional>

#include "core/device/threads.h"
#include "core/ops/index/index_loops.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(IndexLoops, index_loops)

namespace {

constexpr int64_t kGrain = 1 << 15;  // bytes that are worth a thread

// One side of the copies between picked elements and a tensor of the picked shape: picked elements
// lie at before + offsets[i] + after, those of the other tensor at before + i * step + after.
struct Rows {
  Shape before, picked_before, other_before;  // sizes and strides in bytes
  Shape after, picked_after, other_after;
  int64_t before_count, count, step, item, reach;
  const int64_t* offsets;
};

Rows make_rows(const Picked& picked, const Tensor& other, int64_t step) {
  Rows rows;
  rows.item = int64_t(other.itemsize());
  Shape strides = broadcast_strides(other, picked.sizes());
  for (int64_t& stride : strides) stride *= rows.item;
  auto in_bytes = [&](Shape elements) {
    for (int64_t& stride : elements) stride *= rows.item;
    return elements;
  };
  size_t middle = picked.before.size(), end = middle + picked.shape.size();
  rows.before = picked.before;
  rows.picked_before = in_bytes(picked.before_strides);
  rows.other_before.assign(strides.begin(), strides.begin() + middle);
  rows.after = picked.after;
  rows.picked_after = in_bytes(picked.after_strides);
  rows.other_after.assign(strides.begin() + end, strides.end());
  Shape* before[] = {&rows.other_before, &rows.picked_before};
  join_dims(rows.before, before);
  Shape* after[] = {&rows.other_after, &rows.picked_after};
  join_dims(rows.after, after);
  rows.before_count = checked_numel(rows.before);
  rows.count = picked.offsets.numel();
  rows.step = step * rows.item;
  rows.reach = picked.reach;
  rows.offsets = picked.offsets.data<int64_t>();
  return rows;
}

// Calls f(picked, step, other, step, n) for each run of elements after one index position.
template <class F>
void for_each_run(const Rows& rows, char* picked, char* other, F&& f) {
  size_t last = rows.after.size() - 1;
  int64_t runs = 1;
  for (size_t d = 0; d < last; ++d) runs *= rows.after[d];
  Odometer<2> at(ShapeRef(rows.after).first(last),
                 {ShapeRef(rows.picked_after).first(last), ShapeRef(rows.other_after).first(last)});
  for (int64_t r = 0; r < runs; ++r, at.next())
    f(picked + at.at(0), rows.picked_after[last], other + at.at(1), rows.other_after[last],
      rows.after[last]);
}

int64_t bytes_after(const Rows& rows) { return checked_numel(rows.after) * rows.item; }

// Rows at random places arrive late from memory, so some are asked for ahead of their copy; the
// processor itself sees the rest of a long row coming.
constexpr int64_t kRowsAhead = 8;
void prefetch(const char* row, int64_t bytes) {
  constexpr int64_t kCacheLine = 64, kMost = 512;
  for (int64_t i = 0; i < std::min(bytes, kMost); i += kCacheLine) __builtin_prefetch(row + i);
}

// Calls write(picked, other) for the elements of all index positions, on several threads. Each
// thread takes those of a range of offsets, so that no two write one element and the order stays.
template <class Write>
void write_rows(const Rows& rows, char* picked, char* other, Write&& write) {
  constexpr int64_t kChunk = 512;
  int64_t bytes = rows.before_count * rows.count * bytes_after(rows);
  int64_t shares = bytes > kGrain ? num_threads() : 1, width = rows.reach / shares + 1;
  const int64_t* offsets = rows.offsets;
  int64_t item = rows.item, step = rows.step;
  if (shares == 1) {
    Odometer<2> before(rows.before, {rows.picked_before, rows.other_before});
    for (int64_t b = 0; b < rows.before_count; ++b, before.next()) {
      char *to = picked + before.at(0), *from = other + before.at(1);
      for (int64_t i = 0; i < rows.count; ++i) write(to + offsets[i] * item, from + i * step);
    }
    return;
  }
  parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
    Odometer<2> before(rows.before, {rows.picked_before, rows.other_before});
    int64_t mine[kChunk];
    for (int64_t b = 0; b < rows.before_count; ++b, before.next()) {
      char *to = picked + before.at(0), *from = other + before.at(1);
      for (int64_t i = 0; i < rows.count; i += kChunk) {
        int64_t n =
            index_loops().list_between(offsets + i, std::min(kChunk, rows.count - i), begin * width,
                                       uint64_t((end - begin) * width), mine);
        for (int64_t k = 0; k < n; ++k)
          write(to + offsets[i + mine[k]] * item, from + (i + mine[k]) * step);
      }
    }
  });
}

// The step from each position to the next in row-major order, if it is the same everywhere: 0 for
// one value repeated.
std::optional<int64_t> common_step(ShapeRef sizes, ShapeRef strides) {
  std::optional<int64_t> step;
  int64_t count = 1;
  for (size_t d = sizes.size(); d-- > 0; count *= sizes[d]) {
    if (sizes[d] == 1) continue;
    if (!step) step = strides[d];
    else if (strides[d] != *step * count) return std::nullopt;
  }
  return step.value_or(0);
}

// The last column holds places in the flat tensor, in order: makes rows `first` to first + n - 1
// places by dim. Divides once for each row of the tensor only.
void split_places(const Tensor& places, const Shape& sizes, int64_t first, int64_t n) {
  size_t last = sizes.size() - 1;
  int64_t count = places.size(0), inner = sizes[last], row_end = 0;
  Shape row(last);
  int64_t* to = places.data<int64_t>();
  for (int64_t i = first; i < first + n; ++i) {
    int64_t& place = to[int64_t(last) * count + i];
    if (place >= row_end) {
      int64_t rest = place / inner;
      row_end = (rest + 1) * inner;
      for (size_t d = last; d-- > 0; rest /= sizes[d]) row[d] = rest % sizes[d];
    }
    for (size_t d = 0; d < last; ++d) to[int64_t(d) * count + i] = row[d];
    place -= row_end - inner;
  }
}

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_same_v<T, Half>) return to_half(to_float(a) + to_float(b));
  else if constexpr (std::is_same_v<T, BFloat16>) return to_bfloat16(to_float(a) + to_float(b));
  else if constexpr (std::is_same_v<T, bool>) return a || b;
  else if constexpr (std::is_integral_v<T>) return T(uint64_t(a) + uint64_t(b));
  else return a + b;
}

}  // namespace

const IndexLoops& index_loops() { return active(index_loops_sets); }

void add_offsets_cpu(const Tensor& to, const Shape& shape, const Tensor& index, size_t dim,
                     int64_t size, int64_t stride) {
  int64_t* offsets = to.data<int64_t>();
  Shape strides = broadcast_strides(index, shape);
  const int64_t* from = index.data<int64_t>();
  int64_t count = checked_numel(shape);
  bool flat = shape.empty() || (index.is_contiguous() && index.numel() == count);
  int64_t inner = flat ? count : shape.back(), step = flat ? 1 : strides.back();
  ShapeRef outer = ShapeRef(shape).first(flat ? 0 : shape.size() - 1);
  parallel_for(0, count, kGrain, [&](int64_t begin, int64_t end) {
    Odometer<1> row(outer, {ShapeRef(strides).first(outer.size())}, begin / inner);
    for (int64_t i = begin; i < end; row.next()) {
      int64_t last = std::min(end, i - i % inner + inner);
      for (int64_t k = i % inner; i < last; ++i, ++k) {
        int64_t at = from[row.at(0) + k * step];
        if (at < 0) at += size;
        if (uint64_t(at) >= uint64_t(size)) refuse_index(from[row.at(0) + k * step], dim, size);
        offsets[i] += at * stride;
      }
    }
  });
}

void read_picked_cpu(const Tensor& input, const Picked& picked, const Tensor& out) {
  int64_t step = 1;
  for (int64_t size : picked.after) step *= size;
  Rows rows = make_rows(picked, out, step);
  char* from = input.data<char>();
  char* to = out.data<char>();
  auto take = index_loops().take[__builtin_ctzll(uint64_t(rows.item))];
  int64_t row_bytes = bytes_after(rows);
  bool in_one_piece = rows.after.size() == 1 && rows.picked_after[0] == rows.item &&
                      rows.other_after[0] == rows.item;
  int64_t count = rows.before_count * rows.count, grain = kGrain / row_bytes + 1;
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    Odometer<2> before(rows.before, {rows.picked_before, rows.other_before}, begin / rows.count);
    for (int64_t r = begin; r < end; before.next()) {
      int64_t first = r % rows.count, last = std::min(rows.count, first + end - r);
      r += last - first;
      char* source = from + before.at(0);
      char* row = to + before.at(1) + first * rows.step;
      if (rows.after.empty()) {
        take(source, 1, 0, rows.offsets + first, last - first, row);
        continue;
      }
      for (int64_t i = first; i < last; ++i, row += rows.step) {
        if (i + kRowsAhead < last)
          prefetch(source + rows.offsets[i + kRowsAhead] * rows.item, row_bytes);
        char* found = source + rows.offsets[i] * rows.item;
        if (in_one_piece) {
          std::memcpy(row, found, size_t(row_bytes));
          continue;
        }
        for_each_run(rows, found, row,
                     [&](char* p, int64_t p_step, char* o, int64_t o_step, int64_t n) {
                       copy_run(o, o_step, p, p_step, rows.item, n);
                     });
      }
    }
  });
}

void write_picked_cpu(const Tensor& input, const Picked& picked, const Tensor& source,
                      bool accumulate) {
  Shape sizes = picked.sizes(), strides = broadcast_strides(source, sizes);
  size_t first = picked.before.size(), count = picked.shape.size();
  std::optional<int64_t> step = common_step(picked.shape, ShapeRef(strides).subspan(first, count));
  if (!step) {
    Tensor dense = empty(sizes, source.dtype(), source.device());
    copy_into(dense, source);
    return write_picked_cpu(input, picked, dense, accumulate);
  }
  Rows rows = make_rows(picked, source, *step);
  char* to = input.data<char>();
  char* from = source.data<char>();
  bool one = rows.after.empty();
  if (accumulate) {
    visit_dtype(input.dtype(), [&]<class T>(Tag<T>) {
      write_rows(rows, to, from, [&](char* p, char* o) {
        T& target = *reinterpret_cast<T*>(p);
        if (one) target = sum(target, *reinterpret_cast<const T*>(o));
        else
          for_each_run(rows, p, o,
                       [&](char* x, int64_t x_step, char* y, int64_t y_step, int64_t n) {
                         add_run(input.dtype(), x, x_step, y, y_step, n);
                       });
      });
    });
  } else {
    visit_item(rows.item, [&]<class T>(Tag<T>) {
      write_rows(rows, to, from, [&](char* p, char* o) {
        if (one) *reinterpret_cast<T*>(p) = *reinterpret_cast<const T*>(o);
        else
          for_each_run(rows, p, o, [](char* x, int64_t x_step, char* y, int64_t y_step, int64_t n) {
            copy_run(x, x_step, y, y_step, sizeof(T), n);
          });
      });
    });
  }
}

void add_run(DType dtype, char* to, int64_t to_step, const char* from, int64_t from_step,
             int64_t n) {
  if (is_complex(dtype) && to_step == from_step && to_step == int64_t(dtype_size(dtype)))
    return add_run(real_dtype(dtype), to, to_step / 2, from, from_step / 2, 2 * n);
  if (to_step == from_step && to_step == int64_t(dtype_size(dtype)))
    return index_loops().add[int(dtype)](to, from, n);
  visit_dtype(dtype, [&]<class T>(Tag<T>) {
    for (int64_t i = 0; i < n; ++i) {
      T& target = *reinterpret_cast<T*>(to + i * to_step);
      target = sum(target, *reinterpret_cast<const T*>(from + i * from_step));
    }
  });
}

Tensor nonzero_places_cpu(const Tensor& flags) {
  const bool* flag = flags.data<bool>();
  int64_t numel = flags.numel(), ndim = flags.dim();
  int64_t shares = numel > kGrain ? num_threads() : 1, each = numel / shares + 1;
  auto start_of = [&](int64_t share) { return std::min(numel, share * each); };
  std::vector<int64_t> counts(size_t(shares) + 1);
  parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s)
      counts[size_t(s) + 1] =
          index_loops().count(flag + start_of(s), start_of(s + 1) - start_of(s));
  });
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
  int64_t count = counts.back();
  // Column by column, because the columns are used as index tensors.
  Tensor places =
      empty_strided(Shape{count, ndim}, Shape{1, std::max<int64_t>(count, 1)}, DType::int64);
  if (ndim == 0) return places;
  int64_t* last = places.data<int64_t>() + (ndim - 1) * count;
  parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      int64_t first = counts[size_t(s)], n = counts[size_t(s) + 1] - first;
      index_loops().list(flag + start_of(s), start_of(s + 1) - start_of(s), start_of(s), n,
                         last + first);
      if (ndim > 1) split_places(places, flags.sizes(), first, n);
    }
  });
  return places;
}

}  // namespace rushlight
