// Owns the forms for sparse tensors of ops that rearrange, pick, join and resize.
#include <algorithm>

#include "core/ops/index/index.h"
#include "core/ops/op.h"
#include "core/ops/sparse/sparse.h"
#include "core/ops/sparse/sparse_batch.h"
#include "core/ops/sparse/sparse_checks.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

void check_coo(const Tensor& tensor) {
  CHECK(layout_of(tensor) == Layout::sparse_coo, ErrorKind::kNotImplemented,
        "not implemented for tensors of layout ", layout_name(layout_of(tensor)),
        ". Use to_sparse_coo() first.");
}

// The rows of indices as one tensor; there may be none.
Tensor joined_rows(const std::vector<Tensor>& rows, int64_t count) {
  return rows.empty() ? empty(Shape{0, count}, DType::int64) : stack(rows, 0);
}

void check_resize(const Tensor& input, ShapeRef size, int64_t sparse_dim, int64_t dense_dim) {
  check_coo(input);
  CHECK(sparse_dim >= 0 && dense_dim >= 0 && sparse_dim + dense_dim == int64_t(size.size()),
        "number of dimensions must be sparse_dim (", sparse_dim, ") + dense_dim (", dense_dim,
        "), but got ", size.size());
}

// Where in the values a dense dim of the tensor is.
int64_t value_dim(const SparsePattern& pattern, int64_t dim) {
  return dim - pattern.sparse_dim() + 1 + int64_t(pattern.block().size());
}

// Matrices with their rows and columns swapped.
Tensor turned(const Tensor& input) {
  Tensor values = sparse_values(input);
  if (has_blocks(layout_of(input))) values = transpose(values, 1, 2);
  return in_pattern(SparsePattern::transposed(pattern_of(input)), values);
}

// A compressed tensor whose dims d are those of another one, order[d], of the same kind.
Tensor permute_compressed(const Tensor& input, const Shape& order) {
  auto matrix = order.begin() + pattern_of(input)->batch_dims(), dense = matrix + 2;
  CHECK(std::is_sorted(dense, order.end()), ErrorKind::kNotImplemented,
        "dense dims of tensors of layout ", layout_name(layout_of(input)),
        " cannot be permuted. Use to_sparse_coo() first.");
  Tensor result = input;
  if (!std::is_sorted(order.begin(), matrix))
    result = with_changed_batch(result, [&](const Tensor& part) {
      Shape dims(order.begin(), matrix);
      while (int64_t(dims.size()) < part.dim()) dims.push_back(int64_t(dims.size()));
      return permute(part, dims);
    });
  return matrix[0] < matrix[1] ? result : turned(result);
}

// In the layout of input.
Tensor without_entries(const Tensor& input, ShapeRef size, int64_t sparse_dim,
                       std::optional<DType> dtype, std::optional<Device> device) {
  CHECK(!device || *device == input.device(), ErrorKind::kNotImplemented,
        "sparse tensors are not implemented on ", *device, ".");
  return to_layout_of(input, empty_coo(size, sparse_dim, dtype.value_or(input.dtype())));
}

}  // namespace

Tensor sparse_permute(const Tensor& input, ShapeRef dims) {
  int64_t ndim = input.dim(), sparse_dim = pattern_of(input)->sparse_dim();
  int64_t batch_dims = pattern_of(input)->batch_dims();
  auto kind = [&](int64_t dim) { return (dim >= batch_dims) + (dim >= sparse_dim); };
  CHECK(int64_t(dims.size()) == ndim, "dims ", ShapeText{dims}, " must name each of the ", ndim,
        " dims of the tensor once");
  std::vector<bool> seen(static_cast<size_t>(ndim));
  Shape order, value_order{0}, sizes;
  for (int64_t d = 0; d < ndim; ++d) {
    int64_t from = wrap_dim(dims[size_t(d)], ndim);
    CHECK(!seen[size_t(from)], "dims ", ShapeText{dims}, " repeat dim ", from);
    seen[size_t(from)] = true;
    order.push_back(from);
    CHECK(kind(d) == kind(from), "dim ", from, " cannot become dim ", d, ": first come ",
          batch_dims, " dims of a batch, then ", sparse_dim - batch_dims,
          " sparse ones, then dense ones, and each must stay what it is.");
    if (d < sparse_dim) sizes.push_back(input.sizes()[size_t(from)]);
    else value_order.push_back(value_dim(*pattern_of(input), from));
  }
  if (std::is_sorted(order.begin(), order.end())) return input;
  if (layout_of(input) != Layout::sparse_coo) return permute_compressed(input, order);
  if (ndim == 2 && sparse_dim == 2) return turned(input);
  std::vector<Tensor> from = index_rows(*pattern_of(input)), rows;
  for (int64_t d = 0; d < sparse_dim; ++d) rows.push_back(from[size_t(order[size_t(d)])]);
  bool in_order =
      std::is_sorted(order.begin(), order.begin() + sparse_dim) && pattern_of(input)->coalesced();
  return sparse_coo(joined_rows(rows, pattern_of(input)->count()),
                    permute(sparse_values(input), value_order), sizes, in_order);
}

Tensor sparse_transpose(const Tensor& input, int64_t dim0, int64_t dim1) {
  Shape order;
  for (int64_t d = 0; d < input.dim(); ++d) order.push_back(d);
  int64_t a = wrap_dim(dim0, input.dim()), b = wrap_dim(dim1, input.dim());
  if (a == b) return input;
  std::swap(order[size_t(a)], order[size_t(b)]);
  return sparse_permute(input, order);
}

Tensor sparse_unsqueeze(const Tensor& input, int64_t dim) {
  check_coo(input);
  const SparsePattern& pattern = *pattern_of(input);
  dim = wrap_dim(dim, input.dim() + 1);
  Tensor values = sparse_values(input);
  if (dim > pattern.sparse_dim())
    return sparse_coo(pattern.indices(), unsqueeze(values, value_dim(pattern, dim)),
                      pattern.sizes(), pattern.coalesced());
  std::vector<Tensor> rows = index_rows(pattern);
  rows.insert(rows.begin() + dim, zeros(Shape{pattern.count()}, DType::int64));
  Shape sizes = pattern.sizes();
  sizes.insert(size_t(dim), 1);
  return sparse_coo(stack(rows, 0), values, sizes, pattern.coalesced());
}

Tensor sparse_select(const Tensor& input, int64_t dim, int64_t index) {
  dim = wrap_dim(dim, input.dim());
  int64_t size = input.sizes()[size_t(dim)];
  CHECK(index >= -size && index < size, ErrorKind::kIndex, "index ", index,
        " out of range for dim ", dim, " of size ", size);
  if (index < 0) index += size;
  const SparsePattern& pattern = *pattern_of(input);
  if (dim < pattern.batch_dims())
    return with_changed_batch(input, [&](const Tensor& part) { return select(part, dim, index); });
  Tensor values = sparse_values(input);
  if (dim >= pattern.sparse_dim())
    return in_pattern(pattern_of(input), select(values, value_dim(pattern, dim), index));
  if (!pattern.is_coo()) return sparse_select(to_layout(input, Layout::sparse_coo), dim, index);
  std::vector<Tensor> rows = index_rows(pattern);
  Tensor kept = squeeze(nonzero(rows[size_t(dim)] == index), 1);
  values = take_entries(values, kept);
  if (pattern.sparse_dim() == 1) return cast(sum(values, Shape{0}), values.dtype());
  rows.erase(rows.begin() + dim);
  Shape sizes = pattern.sizes();
  sizes.erase(size_t(dim));
  for (Tensor& row : rows) row = take_entries(row, kept);
  return sparse_coo(stack(rows, 0), values, sizes, pattern.coalesced());
}

Tensor sparse_index_select(const Tensor& input, int64_t dim, const Tensor& index) {
  dim = wrap_dim(dim, input.dim());
  CHECK(input.is_sparse() && !index.is_sparse() && index.dim() == 1 && is_integral(index.dtype()),
        "index must be a dense vector of integers, but has shape ", index.sizes(), " and dtype ",
        dtype_name(index.dtype()), ".");
  const SparsePattern& pattern = *pattern_of(input);
  auto pick = [&](const Tensor& part, int64_t d) {
    return call<"index_select", Tensor>(part, d, index);
  };
  if (dim < pattern.batch_dims())
    return with_changed_batch(input, [&](const Tensor& part) { return pick(part, dim); });
  if (dim >= pattern.sparse_dim())
    return in_pattern(pattern_of(input), pick(sparse_values(input), value_dim(pattern, dim)));
  if (!pattern.is_coo()) {
    Tensor picked = sparse_index_select(to_layout(input, Layout::sparse_coo), dim, index);
    return has_blocks(layout_of(input)) ? picked : to_layout(picked, layout_of(input));
  }
  Tensor wanted = to_contiguous(to_dtype(index, DType::int64));
  int64_t size = pattern.sizes()[size_t(dim)], count = pattern.count();
  check_bounds(wanted, -size, size, size_t(dim), size);
  wanted = where(wanted < 0, wanted + size, wanted);
  std::vector<Tensor> rows = index_rows(pattern);
  // The entries of each slice, then those of the slices in the order that is asked for.
  std::vector<std::vector<int64_t>> slices;
  std::vector<int64_t> slice_of(static_cast<size_t>(size), -1);
  for (int64_t i = 0; i < wanted.numel(); ++i) {
    int64_t& slice = slice_of[size_t(wanted.data<int64_t>()[i])];
    if (slice < 0) {
      slice = int64_t(slices.size());
      slices.emplace_back();
    }
  }
  const int64_t* along = rows[size_t(dim)].data<int64_t>();
  for (int64_t k = 0; k < count; ++k)
    if (int64_t slice = slice_of[size_t(along[k])]; slice >= 0) slices[size_t(slice)].push_back(k);
  std::vector<int64_t> entries, places;
  for (int64_t i = 0; i < wanted.numel(); ++i)
    for (int64_t k : slices[size_t(slice_of[size_t(wanted.data<int64_t>()[i])])]) {
      entries.push_back(k);
      places.push_back(i);
    }
  Tensor kept = empty(Shape{int64_t(entries.size())}, DType::int64), place = kept;
  place = empty(kept.sizes(), DType::int64);
  std::copy(entries.begin(), entries.end(), kept.data<int64_t>());
  std::copy(places.begin(), places.end(), place.data<int64_t>());
  for (Tensor& row : rows) row = take_entries(row, kept);
  rows[size_t(dim)] = place;
  Shape sizes = pattern.sizes();
  sizes[size_t(dim)] = wanted.numel();
  return sparse_coo(stack(rows, 0), take_entries(sparse_values(input), kept), sizes,
                    dim == 0 && pattern.coalesced());
}

// Zeros before and behind along a dim, which then has `total` elements.
Tensor padded(const Tensor& values, int64_t dim, int64_t before, int64_t total) {
  Shape sizes = values.sizes();
  int64_t size = sizes[size_t(dim)];
  sizes[size_t(dim)] = before;
  Tensor left = zeros(sizes, values.dtype());
  sizes[size_t(dim)] = total - before - size;
  return cat(std::array{left, values, zeros(sizes, values.dtype())}, dim);
}

Tensor sparse_cat(TensorList tensors, int64_t dim) {
  const Tensor& first = tensors[0];
  std::vector<Tensor> indices, values;
  Shape sizes;
  bool in_order = true, is_dense_dim = false;
  int64_t before = 0, total = 0;
  for (const Tensor& t : tensors) {
    CHECK(t.is_sparse(), ErrorKind::kNotImplemented,
          "sparse and dense tensors cannot be joined. Use to_dense() or to_sparse().");
    check_coo(t);
    const SparsePattern& pattern = *pattern_of(t);
    if (indices.empty()) {
      dim = wrap_dim(dim, first.dim());
      sizes = pattern.sizes();
      is_dense_dim = dim >= pattern.sparse_dim();
      if (!is_dense_dim) sizes[size_t(dim)] = 0;
      for (const Tensor& other : tensors) total += dim < other.dim() ? other.size(dim) : 0;
    }
    bool fits = t.dim() == first.dim() && pattern.sparse_dim() == int64_t(sizes.size());
    for (int64_t d = 0; fits && d < t.dim(); ++d)
      fits = d == dim || t.sizes()[size_t(d)] == first.sizes()[size_t(d)];
    CHECK(fits, "shapes ", first.sizes(), " and ", t.sizes(), " with ", sizes.size(), " and ",
          pattern.sparse_dim(), " sparse dims do not join along dim ", dim, ".");
    if (is_dense_dim) {
      indices.push_back(pattern.indices());
      values.push_back(padded(sparse_values(t), dim - pattern.sparse_dim() + 1, before, total));
    } else {
      std::vector<Tensor> rows = index_rows(pattern);
      rows[size_t(dim)] = rows[size_t(dim)] + before;
      sizes[size_t(dim)] += pattern.sizes()[size_t(dim)];
      indices.push_back(stack(rows, 0));
      values.push_back(sparse_values(t));
    }
    before += t.size(dim);
    in_order &= dim == 0 && !is_dense_dim && pattern.coalesced();
  }
  return sparse_coo(cat(indices, 1), cat(values, 0), sizes, in_order);
}

Tensor sparse_stack(TensorList tensors, int64_t dim) {
  std::vector<Tensor> wider;
  for (const Tensor& t : tensors) {
    if (!t.is_sparse()) return sparse_cat(tensors, dim);  // says what is wrong
    wider.push_back(sparse_unsqueeze(t, dim));
  }
  return sparse_cat(wider, wrap_dim(dim, tensors[0].dim() + 1));
}

std::vector<Tensor> sparse_unbind(const Tensor& input, int64_t dim) {
  std::vector<Tensor> slices;
  for (int64_t i = 0; i < input.size(dim); ++i) slices.push_back(sparse_select(input, dim, i));
  return slices;
}

Tensor sparse_zeros_like(const Tensor& input, std::optional<DType> dtype,
                         std::optional<Device> device, std::optional<MemoryFormat>) {
  return without_entries(input, input.sizes(), pattern_of(input)->sparse_dim(), dtype, device);
}

// A compressed tensor keeps its pattern.
Tensor sparse_empty_like(const Tensor& input, std::optional<DType> dtype,
                         std::optional<Device> device, std::optional<MemoryFormat> format) {
  if (pattern_of(input)->is_coo()) return sparse_zeros_like(input, dtype, device, format);
  return sparse_like(call<"empty_like", Tensor>(plain_values_of(input), dtype, device, format),
                     input);
}

Tensor sparse_full_like(const Tensor& input, Scalar fill_value, std::optional<DType> dtype,
                        std::optional<Device> device, std::optional<MemoryFormat> format) {
  return sparse_like(
      call<"full_like", Tensor>(entries_to_fill(input), fill_value, dtype, device, format), input);
}

Tensor sparse_ones_like(const Tensor& input, std::optional<DType> dtype,
                        std::optional<Device> device, std::optional<MemoryFormat> format) {
  return sparse_full_like(input, 1, dtype, device, format);
}

Tensor sparse_new_zeros(const Tensor& input, ShapeRef size, std::optional<DType> dtype,
                        std::optional<Device> device) {
  return without_entries(input, size, int64_t(size.size()), dtype, device);
}

Tensor entries_to_fill(const Tensor& sparse) {
  if (pattern_of(sparse)->is_coo()) refuse_sparse(sparse);
  return plain_values_of(sparse);
}

OP(sparse_resize_, "(Tensor! input, int[] size, int sparse_dim, int dense_dim) -> Tensor", {
  .doc     = R"(Gives a COO tensor other sizes; with entries, they may only grow.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, ShapeRef size, int64_t sparse_dim, int64_t dense_dim) {
    check_resize(input, size, sparse_dim, dense_dim);
    const SparsePattern& pattern = *pattern_of(input);
    ShapeRef sparse_sizes = size.first(size_t(sparse_dim));
    if (pattern.count() == 0) {
      take_parts(input, empty_coo(size, sparse_dim, input.dtype()));
      return input;
    }
    CHECK(sparse_dim == pattern.sparse_dim(), "changing the number of sparse dims of a tensor "
          "with entries from ", pattern.sparse_dim(), " to ", sparse_dim, " is not supported");
    for (size_t d = 0; d < size.size(); ++d) {
      bool fits = int64_t(d) < sparse_dim ? size[d] >= input.sizes()[d]
                                          : size[d] == input.size(int64_t(d));
      CHECK(fits, "shrinking a sparse dim, or changing a dense one, of a tensor with entries is "
                  "not supported: dim ", d, " is ", input.sizes()[d], " and would become ",
            size[d], ". Use sparse_resize_and_clear_().");
    }
    take_parts(input, make_sparse(SparsePattern::coo(pattern.indices(), sparse_sizes,
                                                     pattern.coalesced()),
                                  plain_values_of(input)));
    return input;
  },
})

OP(sparse_resize_and_clear_,
   "(Tensor! input, int[] size, int sparse_dim, int dense_dim) -> Tensor", {
  .doc     = R"(Gives a COO tensor other sizes and no entries.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, ShapeRef size, int64_t sparse_dim, int64_t dense_dim) {
    check_resize(input, size, sparse_dim, dense_dim);
    take_parts(input, empty_coo(size, sparse_dim, input.dtype()));
    return input;
  },
})

}  // namespace rushlight
