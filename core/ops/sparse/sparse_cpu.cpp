// Defines the products with sparse matrices: threads share the lines, so that each has about as
// many entries, and one line is always summed in the order of its entries.
#include <algorithm>
#include <array>

#include "core/base/ceil_div.h"
#include "core/device/threads.h"
#include "core/ops/sparse/sparse_kernels.h"
#include "core/ops/sparse/sparse_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(SparseLoops, sparse_loops)
ISA_TABLES(BlockLoops, block_loops)

namespace {

const SparseLoops& loops() { return active(sparse_loops_sets); }
const BlockLoops& of_blocks() { return active(block_loops_sets); }

constexpr int64_t kGrain = 1 << 15;  // multiplications that are worth a thread

// Calls f(lines) for disjoint ranges of lines. A line counts as its entries and itself; each entry
// makes that many multiplications.
template <class F>
void for_lines(const EntryOrder& order, double multiplications, F&& f) {
  const int64_t* start = order.start.data<int64_t>();
  int64_t count = order.start.numel() - 1, work = start[count] + count;
  // The first line that begins at or behind a share of the work.
  auto line_at = [&](int64_t share) {
    int64_t low = 0, high = count;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (start[middle] + middle < share) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  int64_t grain = int64_t(kGrain / std::max(multiplications, 1.0)) + 1;
  parallel_for(0, work, grain, [&](int64_t begin, int64_t end) {
    f(SparseLines{start, order.other.data<int64_t>(), order.entries(), line_at(begin),
                  line_at(end)});
  });
}

// What sums are made in: small floats in float32, bool in a count.
template <class T>
struct SumOf {
  using type = T;
  static T in(T x) { return x; }
  static T out(T x) { return x; }
};
template <>
struct SumOf<Half> {
  using type = float;
  static float in(Half x) { return to_float(x); }
  static Half out(float x) { return to_half(x); }
};
template <>
struct SumOf<BFloat16> {
  using type = float;
  static float in(BFloat16 x) { return to_float(x); }
  static BFloat16 out(float x) { return to_bfloat16(x); }
};
template <>
struct SumOf<bool> {
  using type = int;
  static int in(bool x) { return x; }
  static bool out(int x) { return x != 0; }
};

template <class T>
auto product(T a, T b) {
  // Small types promote to int, which must not overflow.
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return T(uint64_t(a) * uint64_t(b));
  else return a * b;
}
template <class T>
T total(T a, T b) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, int>)
    return T(uint64_t(a) + uint64_t(b));
  else return a + b;
}

template <class T>
void multiply_lines(const SparseLines& lines, const SparseBlocks& blocks, const T* values,
                    const T* dense, int64_t n, T* out) {
  using Sum = SumOf<T>;
  std::vector<typename Sum::type> sums(static_cast<size_t>(n));
  for (int64_t i = lines.begin * blocks.rows; i < lines.end * blocks.rows; ++i) {
    int64_t line = i / blocks.rows, r = i % blocks.rows;
    std::fill(sums.begin(), sums.end(), typename Sum::type(0));
    for (int64_t k = lines.start[line]; k < lines.start[line + 1]; ++k) {
      const T* block = values + (lines.entry ? lines.entry[k] : k) * blocks.size();
      const T* row = dense + lines.other[k] * blocks.columns * n;
      for (int64_t c = 0; c < blocks.columns; ++c, row += n) {
        auto value = Sum::in(block[r * blocks.row_step + c * blocks.column_step]);
        for (int64_t j = 0; j < n; ++j)
          sums[size_t(j)] = total(sums[size_t(j)], product(value, Sum::in(row[j])));
      }
    }
    for (int64_t j = 0; j < n; ++j) out[i * n + j] = Sum::out(sums[size_t(j)]);
  }
}

// Which of the loops for elements multiplies a dtype; -1 for none.
int multiply_loop(DType dtype) {
  switch (dtype) {
    case DType::float32: return 0;
    case DType::float64: return 1;
    case DType::float16: return 2;
    case DType::bfloat16: return 3;
    default: return -1;
  }
}

template <class T>
void dot_lines(const SparseLines& lines, const SparseBlocks& blocks, const T* left, const T* right,
               int64_t n, T* out) {
  using Sum = SumOf<T>;
  for (int64_t i = lines.begin; i < lines.end; ++i)
    for (int64_t k = lines.start[i]; k < lines.start[i + 1]; ++k)
      for (int64_t e = 0; e < blocks.size(); ++e) {
        typename Sum::type sum(0);
        const T* a = left + (i * blocks.rows + e / blocks.columns) * n;
        const T* b = right + (lines.other[k] * blocks.columns + e % blocks.columns) * n;
        for (int64_t j = 0; j < n; ++j) sum = total(sum, product(Sum::in(a[j]), Sum::in(b[j])));
        out[(lines.entry ? lines.entry[k] : k) * blocks.size() + e] = Sum::out(sum);
      }
}

// The entries of a pattern, or of it transposed.
SparseBlocks blocks_of(const SparsePattern& pattern, bool transposed) {
  const Shape& block = pattern.block();
  if (block.empty()) return {};
  if (transposed) return {block[1], block[0], 1, block[1]};
  return {block[0], block[1], block[1], 1};
}
Shape values_shape(const SparsePattern& pattern) {
  Shape sizes = pattern.block();
  sizes.insert(0, pattern.count());
  return sizes;
}

// The rows of a product that one range of lines gives.
template <class T>
struct ProductRows {
  std::vector<int64_t> rows, columns;
  std::vector<T> values;
};

template <class T>
ProductRows<T> multiply_rows(const SparseLines& a, const T* a_values, const SparseLines& b,
                             const T* b_values) {
  using Sum = SumOf<T>;
  struct Term {
    int64_t column;
    typename Sum::type value;
  };
  std::vector<Term> terms;
  ProductRows<T> out;
  for (int64_t i = a.begin; i < a.end; ++i) {
    terms.clear();
    for (int64_t k = a.start[i]; k < a.start[i + 1]; ++k) {
      auto value = Sum::in(a_values[a.entry ? a.entry[k] : k]);
      for (int64_t l = b.start[a.other[k]]; l < b.start[a.other[k] + 1]; ++l)
        terms.push_back({b.other[l], product(value, Sum::in(b_values[b.entry ? b.entry[l] : l]))});
    }
    std::stable_sort(terms.begin(), terms.end(),
                     [](const Term& x, const Term& y) { return x.column < y.column; });
    for (size_t t = 0; t < terms.size();) {
      Term sum = terms[t++];
      while (t < terms.size() && terms[t].column == sum.column)
        sum.value = total(sum.value, terms[t++].value);
      out.rows.push_back(i);
      out.columns.push_back(sum.column);
      out.values.push_back(Sum::out(sum.value));
    }
  }
  return out;
}

SparseLines all_lines(const EntryOrder& order) {
  return {order.start.data<int64_t>(), order.other.data<int64_t>(), order.entries(), 0,
          order.start.numel() - 1};
}

// Threads share the columns of the product, for each is to pack its own; the lines when there are
// few columns.
void multiply_blocks(const EntryOrder& order, const SparseBlocks& blocks, const Tensor& values,
                     const Tensor& dense, const Tensor& out) {
  bool is_double = dense.dtype() == DType::float64;
  int64_t n = dense.size(1), height = dense.size(0);
  int64_t width = of_blocks().panel_columns[is_double], panels = ceil_div(n, width);
  auto run = [&](const SparseLines& lines, int64_t begin, int64_t end) {
    Tensor panel = empty(Shape{height * std::min(width, n + 15)}, dense.dtype());  // whole vectors
    of_blocks().multiply[is_double](lines, blocks, values.data(), dense.data(), height, begin, end,
                                    n, out.data(), panel.data());
  };
  if (panels < 4 * num_threads())
    return for_lines(order, double(n) * double(blocks.size()),
                     [&](const SparseLines& lines) { run(lines, 0, n); });
  parallel_for(0, panels, kGrain / std::max<int64_t>(values.numel() * width, 1) + 1,
               [&](int64_t begin, int64_t end) {
                 run(all_lines(order), begin * width, std::min(n, end * width));
               });
}

}  // namespace

Tensor multiply_sparse_dense(const SparsePattern& pattern, const Tensor& values,
                             const Tensor& dense, bool transposed) {
  SparseBlocks blocks = blocks_of(pattern, transposed);
  CHECK(pattern.sparse_dim() >= 2 && dense.dim() == 2 && values.dtype() == dense.dtype() &&
            values.sizes() == values_shape(pattern) &&
            dense.size(0) == pattern.line_count(!transposed) * blocks.columns,
        "values of shape ", values.sizes(), " in a sparse matrix of shape ", pattern.sizes(),
        transposed ? ", transposed," : "", " do not multiply with shape ", dense.sizes(), ".");
  const EntryOrder& order = pattern.by(transposed);
  int64_t n = dense.size(1);
  Tensor out = empty(Shape{(order.start.numel() - 1) * blocks.rows, n}, dense.dtype());
  Tensor v = to_contiguous(values), d = to_contiguous(dense);
  if (out.numel() == 0) return out;
  bool has_loops = dense.dtype() == DType::float32 || dense.dtype() == DType::float64;
  if (has_loops && !pattern.block().empty()) {
    multiply_blocks(order, blocks, v, d, out);
    return out;
  }
  int loop = pattern.block().empty() ? multiply_loop(dense.dtype()) : -1;
  for_lines(order, double(n) * double(blocks.size()), [&](const SparseLines& lines) {
    if (loop >= 0) loops().multiply[loop](lines, v.data(), d.data(), n, out.data());
    else
      visit_dtype(dense.dtype(), [&]<class T>(Tag<T>) {
        multiply_lines(lines, blocks, v.data<T>(), d.data<T>(), n, out.data<T>());
      });
  });
  return out;
}

Tensor dots_of_entries(const SparsePattern& pattern, const Tensor& left, const Tensor& right) {
  SparseBlocks blocks = blocks_of(pattern, false);
  CHECK(pattern.sparse_dim() >= 2 && left.dim() == 2 && right.dim() == 2 &&
            left.dtype() == right.dtype() && left.size(1) == right.size(1) &&
            left.size(0) == pattern.line_count(0) * blocks.rows &&
            right.size(0) == pattern.line_count(1) * blocks.columns,
        "rows of shapes ", left.sizes(), " and ", right.sizes(),
        " do not fit a sparse matrix of "
        "shape ",
        pattern.sizes(), ".");
  int64_t n = left.size(1);
  Tensor out = empty(values_shape(pattern), left.dtype());
  Tensor l = to_contiguous(left), r = to_contiguous(right);
  bool is_double = left.dtype() == DType::float64;
  for_lines(pattern.by(0), double(n) * double(blocks.size()), [&](const SparseLines& lines) {
    if (!is_double && left.dtype() != DType::float32)
      visit_dtype(left.dtype(), [&]<class T>(Tag<T>) {
        dot_lines(lines, blocks, l.data<T>(), r.data<T>(), n, out.data<T>());
      });
    else if (pattern.block().empty())
      loops().dots[is_double](lines, l.data(), r.data(), n, out.data());
    else of_blocks().dots[is_double](lines, blocks, l.data(), r.data(), n, out.data());
  });
  return out;
}

SparseProduct multiply_sparse(const SparsePattern& a, const Tensor& a_values,
                              const SparsePattern& b, const Tensor& b_values) {
  CHECK(a.sparse_dim() == 2 && b.sparse_dim() == 2 && a_values.dim() == 1 && b_values.dim() == 1 &&
            a_values.numel() == a.count() && b_values.numel() == b.count() &&
            a_values.dtype() == b_values.dtype() && a.sizes()[1] == b.sizes()[0],
        "sparse matrices of shapes ", a.sizes(), " and ", b.sizes(), " do not multiply.");
  Tensor left = to_contiguous(a_values), right = to_contiguous(b_values);
  const EntryOrder &a_rows = a.by(0), &b_rows = b.by(0);
  return visit_dtype(left.dtype(), [&]<class T>(Tag<T>) {
    ProductRows<T> rows =
        multiply_rows(all_lines(a_rows), left.data<T>(), all_lines(b_rows), right.data<T>());
    int64_t count = int64_t(rows.rows.size());
    SparseProduct out{empty(Shape{2, count}, DType::int64), empty(Shape{count}, left.dtype())};
    int64_t* index = out.indices.template data<int64_t>();
    std::copy(rows.rows.begin(), rows.rows.end(), index);
    std::copy(rows.columns.begin(), rows.columns.end(), index + count);
    std::copy(rows.values.begin(), rows.values.end(), out.values.template data<T>());
    return out;
  });
}

}  // namespace rushlight
