// Defines how batches of compressed matrices are taken apart and put together.
#include "core/ops/sparse/sparse_batch.h"

#include <algorithm>

#include "core/ops/sparse/sparse.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

Shape batch_of(const SparsePattern& pattern) {
  return ShapeRef(pattern.sizes()).first(size_t(pattern.batch_dims()));
}

const EntryOrder& lines_of(const SparsePattern& pattern) {
  return pattern.by(is_by_columns(pattern.layout()));
}

// A copy, (batch..., size), whose elements for matrix m are those of `from` from m * step on, less
// m * below.
Tensor by_matrix(const SparsePattern& pattern, const Tensor& from, int64_t size, int64_t step,
                 int64_t below) {
  Shape sizes = batch_of(pattern);
  sizes.push_back(size);
  Tensor made = empty(sizes, DType::int64);
  const int64_t* f = from.data<int64_t>();
  int64_t* to = made.data<int64_t>();
  for (int64_t m = 0; m * size < made.numel(); ++m)
    for (int64_t i = 0; i < size; ++i) *to++ = f[m * step + i] - m * below;
  made.storage()->freeze();
  return made;
}

}  // namespace

int64_t entries_of_matrix(const SparsePattern& pattern) {
  return pattern.count() / std::max<int64_t>(checked_numel(batch_of(pattern)), 1);
}

Tensor starts_by_matrix(const SparsePattern& pattern) {
  const Tensor& start = lines_of(pattern).start;
  if (pattern.batch_dims() == 0) return start;
  int64_t lines = pattern.sizes()[size_t(pattern.batch_dims() + is_by_columns(pattern.layout()))];
  return by_matrix(pattern, start, lines + 1, lines, entries_of_matrix(pattern));
}

Tensor others_by_matrix(const SparsePattern& pattern) {
  const Tensor& other = lines_of(pattern).other;
  if (pattern.batch_dims() == 0) return other;
  int64_t width = pattern.sizes()[size_t(pattern.batch_dims() + !is_by_columns(pattern.layout()))];
  int64_t entries = entries_of_matrix(pattern);
  return by_matrix(pattern, other, entries, entries, width);
}

Tensor values_by_matrix(const Tensor& sparse) {
  const SparsePattern& pattern = *pattern_of(sparse);
  Tensor values = sparse_values(sparse);
  if (pattern.batch_dims() == 0) return values;
  Shape sizes = batch_of(pattern);
  sizes.push_back(entries_of_matrix(pattern));
  for (int64_t d = 1; d < values.dim(); ++d) sizes.push_back(values.size(d));
  return reshape(values, sizes);
}

EntryOrder joined_lines(const Tensor& starts, const Tensor& others, int64_t width) {
  if (starts.dim() == 1) return {starts, others, {}};
  int64_t lines = starts.size(-1) - 1, count = others.size(-1);
  int64_t matrices = starts.numel() / (lines + 1);
  EntryOrder joined{empty(Shape{matrices * lines + 1}, DType::int64),
                    empty(Shape{others.numel()}, DType::int64),
                    {}};
  const int64_t *start = starts.data<int64_t>(), *other = others.data<int64_t>();
  int64_t *to_start = joined.start.data<int64_t>(), *to_other = joined.other.data<int64_t>();
  *to_start++ = 0;
  for (int64_t m = 0; m < matrices; ++m, start += lines + 1) {
    for (int64_t i = 1; i <= lines; ++i) *to_start++ = m * count + start[i];
    for (int64_t k = 0; k < count; ++k) *to_other++ = m * width + *other++;
  }
  return joined;
}

Tensor by_entry(const Tensor& values, int64_t batch_dims) {
  if (batch_dims == 0) return values;
  Shape sizes(values.sizes().begin() + batch_dims, values.sizes().end());
  sizes[0] = checked_numel(ShapeRef(values.sizes()).first(size_t(batch_dims) + 1));
  return reshape(values, sizes);
}

void check_equal_counts(const EntryOrder& lines, ShapeRef sizes) {
  int64_t matrices = checked_numel(sizes.first(sizes.size() - 2));
  const int64_t* start = lines.start.data<int64_t>();
  int64_t step = matrices ? (lines.start.numel() - 1) / matrices : 0;
  for (int64_t m = 1; m < matrices; ++m) {
    int64_t first = start[step], entries = start[(m + 1) * step] - start[m * step];
    CHECK(entries == first,
          "Expect the same number of specified elements per batch, but matrix 0 has ", first,
          " and matrix ", m, " has ", entries, ". Layout sparse_coo takes any number.");
  }
}

Tensor with_changed_batch(const Tensor& input, const std::function<Tensor(const Tensor&)>& change) {
  const SparsePattern& pattern = *pattern_of(input);
  Tensor starts = to_contiguous(change(starts_by_matrix(pattern)));
  Tensor others = to_contiguous(change(others_by_matrix(pattern)));
  Shape sizes(starts.sizes().begin(), starts.sizes().end() - 1);
  int64_t batch_dims = int64_t(sizes.size());
  for (int64_t size : ShapeRef(pattern.sizes()).last(2)) sizes.push_back(size);
  checked_numel(sizes);
  int64_t width = sizes[size_t(batch_dims + !is_by_columns(pattern.layout()))];
  auto changed = SparsePattern::compressed(pattern.layout(), joined_lines(starts, others, width),
                                           sizes, pattern.coalesced(), pattern.block());
  return in_pattern(changed, by_entry(change(values_by_matrix(input)), batch_dims));
}

}  // namespace rushlight
