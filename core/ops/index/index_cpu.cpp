// Defines the kernels of index tensors for the CPU.
#include "core/ops/index/index.h"

#include <atomic>
#include <cstring>
#include <numeric>
#include <optional>

#include "core/device/threads.h"
#include "core/ops/index/visit_combination.h"
#include "core/tensor/dims.h"
#include "core/tensor/prefetch.h"
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
  if (last == 0) return f(picked, rows.picked_after[0], other, rows.other_after[0], rows.after[0]);
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
constexpr int64_t kBytesAhead = 512;

// Whether the index positions stand for a few single elements of each of many rows.
bool are_few_elements(const Rows& rows) {
  constexpr int64_t kFew = 8;
  return bytes_after(rows) == rows.item && rows.before.size() == 1 && rows.count <= kFew &&
         rows.count < rows.before_count;
}

// Calls f(picked, step, other, step, n) for one of the few after the other, with those of n rows.
template <class F>
void for_each_element(const Rows& rows, char* picked, char* other, F&& f) {
  constexpr int64_t kTogether = 512;  // rows whose memory stays in the cache
  int64_t step = rows.picked_before[0], other_step = rows.other_before[0];
  int64_t grain = kGrain / (rows.count * rows.item);
  parallel_for(0, rows.before_count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kTogether)
      for (int64_t i = 0; i < rows.count; ++i)
        f(picked + first * step + rows.offsets[i] * rows.item, step,
          other + first * other_step + i * rows.step, other_step, std::min(kTogether, end - first));
  });
}

// Calls write(picked, offsets, other, n) for the elements of all index positions, on several
// threads. Each has its rows of `before`, or else the elements within a range of offsets, so that
// no two write one element and the order stays; to find these takes as long as to write a few.
template <class Write>
void write_rows(const Rows& rows, char* picked, char* other, const Write& write) {
  constexpr int64_t kChunk = 512, kFewBytes = 32;
  const int64_t *offsets = rows.offsets, count = rows.count, step = rows.step;
  int64_t bytes = count * bytes_after(rows), shares = num_threads();
  auto for_each_row = [&](int64_t begin, int64_t end, auto&& f) {
    Odometer<2> before(rows.before, {rows.picked_before, rows.other_before}, begin);
    for (int64_t b = begin; b < end; ++b, before.next())
      f(picked + before.at(0), other + before.at(1));
  };
  if (rows.before_count >= shares || rows.before_count * bytes <= kGrain ||
      bytes_after(rows) <= kFewBytes) {
    parallel_for(0, rows.before_count, kGrain / bytes + 1, [&](int64_t begin, int64_t end) {
      for_each_row(begin, end, [&](char* to, char* from) { write(to, offsets, from, count); });
    });
    return;
  }
  int64_t width = rows.reach / shares + 1;
  parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
    int64_t mine[kChunk];
    for_each_row(0, rows.before_count, [&](char* to, char* from) {
      for (int64_t i = 0; i < count; i += kChunk) {
        int64_t n =
            index_loops().list_between(offsets + i, std::min(kChunk, count - i), begin * width,
                                       uint64_t((end - begin) * width), mine);
        for (int64_t k = 0; k < n; ++k)
          write(to, offsets + i + mine[k], from + (i + mine[k]) * step, 1);
      }
    });
  });
}

// The same with write(picked, other) for one position.
template <class Write>
void write_each_row(const Rows& rows, char* picked, char* other, const Write& write) {
  const int64_t item = rows.item, step = rows.step;
  write_rows(rows, picked, other, [=](char* to, const int64_t* offsets, char* from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) write(to + offsets[i] * item, from + i * step);
  });
}

// Writes one element.
template <class Combine>
struct WriteElement {
  void operator()(char* to, const char* from) const {
    using T = typename Combine::Type;
    T& target = *reinterpret_cast<T*>(to);
    target = Combine()(target, *reinterpret_cast<const T*>(from));
  }
};

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

// Column `last` holds places in the flat tensor, in order, and dims behind it have size 1: makes
// rows `first` to first + n - 1 places by dim. Divides only where rows of the tensor are left out.
void split_places(const Tensor& places, const Shape& sizes, size_t last, int64_t first, int64_t n) {
  int64_t count = places.size(0), inner = sizes[last], row_end = 0;
  Shape row(last);
  int64_t* to = places.data<int64_t>();
  for (int64_t i = first; i < first + n; ++i) {
    int64_t& place = to[int64_t(last) * count + i];
    if (i > first && place >= row_end && place < row_end + inner) {  // in the next row
      row_end += inner;
      for (size_t d = last; d-- > 0;) {
        if (++row[d] < sizes[d]) break;
        row[d] = 0;
      }
    } else if (place >= row_end) {
      int64_t rest = place / inner;
      row_end = (rest + 1) * inner;
      for (size_t d = last; d-- > 0; rest /= sizes[d]) row[d] = rest % sizes[d];
    }
    for (size_t d = 0; d < last; ++d) to[int64_t(d) * count + i] = row[d];
    place -= row_end - inner;
  }
}

}  // namespace

const IndexLoops& index_loops() { return active(index_loops_sets); }

void add_offsets_cpu(const Tensor& to, const Shape& shape, const Tensor& index, size_t dim,
                     int64_t size, int64_t stride, bool is_first) {
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
      int64_t k = i % inner, n = std::min(end - i, inner - k);
      const int64_t* places = from + row.at(0) + k * step;
      if (!index_loops().add_offsets(offsets + i, places, step, n, size, stride, is_first))
        for (;; places += step)
          if (*places < -size || *places >= size) refuse_index(*places, dim, size);
      i += n;
    }
  });
}

bool are_places_cpu(const Tensor& index, int64_t size) {
  if (!index.is_contiguous()) return false;
  const int64_t* places = index.data<int64_t>();
  std::atomic<bool> all = true;
  parallel_for(0, index.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (!index_loops().in_range(places + begin, end - begin, size)) all = false;
  });
  return all;
}

void read_picked_cpu(const Tensor& input, const Picked& picked, const Tensor& out) {
  int64_t step = 1;
  for (int64_t size : picked.after) step *= size;
  Rows rows = make_rows(picked, out, step);
  char* from = input.data<char>();
  char* to = out.data<char>();
  if (are_few_elements(rows))
    return for_each_element(rows, from, to,
                            [&](char* p, int64_t p_step, char* o, int64_t o_step, int64_t n) {
                              copy_run(o, o_step, p, p_step, rows.item, n);
                            });
  int64_t row_bytes = bytes_after(rows);
  bool in_one_piece = rows.after.size() == 1 && rows.picked_after[0] == rows.item &&
                      rows.other_after[0] == rows.item;
  int64_t count = rows.before_count * rows.count, grain = kGrain / row_bytes + 1;
  // Calls read(source, offsets, row, n) for the positions of a thread, where `source` is the same.
  auto for_each_part = [&](auto&& read) {
    parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
      Odometer<2> before(rows.before, {rows.picked_before, rows.other_before}, begin / rows.count);
      int64_t first = begin % rows.count;
      for (int64_t left = end - begin; left > 0; before.next(), first = 0) {
        int64_t n = std::min(rows.count - first, left);
        read(from + before.at(0), rows.offsets + first, to + before.at(1) + first * rows.step, n);
        left -= n;
      }
    });
  };
  // Rows of a fixed size are moved without a call for each.
  auto read_rows = [&]<int64_t bytes>(std::integral_constant<int64_t, bytes>) {
    for_each_part([&rows](const char* source, const int64_t* offsets, char* row, int64_t n) {
      const int64_t item = rows.item;  // a local: no store changes it
#pragma GCC unroll 4
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(row + i * bytes, source + offsets[i] * item, size_t(bytes));
    });
  };
  switch (rows.after.empty() || in_one_piece ? row_bytes : 0) {
    case 1: return read_rows(std::integral_constant<int64_t, 1>());
    case 2: return read_rows(std::integral_constant<int64_t, 2>());
    case 4: return read_rows(std::integral_constant<int64_t, 4>());
    case 8: return read_rows(std::integral_constant<int64_t, 8>());
    case 12: return read_rows(std::integral_constant<int64_t, 12>());
    case 16: return read_rows(std::integral_constant<int64_t, 16>());
    case 24: return read_rows(std::integral_constant<int64_t, 24>());
    case 32: return read_rows(std::integral_constant<int64_t, 32>());
    case 64: return read_rows(std::integral_constant<int64_t, 64>());
    case 128: return read_rows(std::integral_constant<int64_t, 128>());
    default: break;
  }
  for_each_part([&](char* source, const int64_t* offsets, char* row, int64_t n) {
    for (int64_t i = 0; i < n; ++i, row += rows.step) {
      if (i + kRowsAhead < n)
        prefetch(source + offsets[i + kRowsAhead] * rows.item, std::min(row_bytes, kBytesAhead));
      char* found = source + offsets[i] * rows.item;
      if (in_one_piece) {
        std::memcpy(row, found, size_t(row_bytes));
        continue;
      }
      for_each_run(rows, found, row,
                   [&](char* p, int64_t p_step, char* o, int64_t o_step, int64_t m) {
                     copy_run(o, o_step, p, p_step, rows.item, m);
                   });
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
  if (are_few_elements(rows) && !accumulate) {
    for_each_element(rows, to, from,
                     [&](char* p, int64_t p_step, char* o, int64_t o_step, int64_t n) {
                       copy_run(p, p_step, o, o_step, rows.item, n);
                     });
  } else if (rows.after.empty() && accumulate && is_half(input.dtype())) {
    CombineAtLoop add_at = combine_halves_at(Scatter::add, input.dtype());
    const AtSteps steps{1, 0, 1, *step};
    write_rows(rows, to, from, [&](char* p, const int64_t* offsets, char* o, int64_t n) {
      add_at(p, offsets, o, steps, n, rows.reach + 1);
    });
  } else if (rows.after.empty() && accumulate) {
    visit_combination(Scatter::add, input.dtype(), [&]<class Combine>(Combine) {
      write_each_row(rows, to, from, WriteElement<Combine>());
    });
  } else if (rows.after.empty()) {
    visit_item(rows.item, [&]<class T>(Tag<T>) {
      write_each_row(rows, to, from, WriteElement<Combination<Scatter::write, T>>());
    });
  } else if (accumulate) {
    CombineRun add(Scatter::add, input.dtype());
    write_each_row(rows, to, from, [&](char* p, char* o) { for_each_run(rows, p, o, add); });
  } else {
    write_each_row(rows, to, from, [&](char* p, char* o) {
      for_each_run(rows, p, o, [&](char* x, int64_t x_step, char* y, int64_t y_step, int64_t n) {
        copy_run(x, x_step, y, y_step, rows.item, n);
      });
    });
  }
}

void CombineRun::combine_others(char* to, int64_t to_step, const char* from, int64_t from_step,
                                int64_t n) const {
  if (is_complex(as_.dtype) && as_.how == Scatter::add && to_step == item_ && from_step == item_)
    return CombineRun(as_.how, real_dtype(as_.dtype))(to, item_ / 2, from, item_ / 2, 2 * n);
  visit_combination(as_.how, as_.dtype, [&]<class Combine>(Combine) {
    WriteElement<Combine> write;
    for (int64_t i = 0; i < n; ++i) write(to + i * to_step, from + i * from_step);
  });
}

Tensor nonzero_places_cpu(const Tensor& flags) {
  const uint8_t* flag = static_cast<const uint8_t*>(flags.data());
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
  auto last = ndim - 1;  // the dim that places are written to first
  while (last > 0 && flags.size(last) == 1) --last;
  int64_t* to = places.data<int64_t>();
  std::fill(to + (last + 1) * count, to + ndim * count, 0);
  parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      int64_t first = counts[size_t(s)], n = counts[size_t(s) + 1] - first;
      index_loops().list(flag + start_of(s), start_of(s + 1) - start_of(s), start_of(s), n,
                         to + last * count + first);
      if (last > 0) split_places(places, flags.sizes(), size_t(last), first, n);
    }
  });
  return places;
}

}  // namespace rushlight
