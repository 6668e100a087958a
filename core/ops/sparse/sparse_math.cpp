// Owns arithmetic, sums and softmax of sparse tensors, as ops on their values.
#include <algorithm>

#include "core/autograd/needs.h"
#include "core/ops/op.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/sparse/sparse.h"
#include "core/ops/sparse/sparse_checks.h"

namespace rushlight {
namespace {

void check_same_shape(const Tensor& a, const Tensor& b) {
  CHECK(a.sizes() == b.sizes(), "sparse tensors of shapes ", a.sizes(), " and ", b.sizes(),
        " do not fit. Both must have the same shape; only a dense tensor broadcasts.");
  CHECK(pattern_of(a)->sparse_dim() == pattern_of(b)->sparse_dim(), "sparse tensors with ",
        pattern_of(a)->sparse_dim(), " and ", pattern_of(b)->sparse_dim(),
        " sparse dims do not fit. Both must have as many.");
}

Scalar negative(Scalar s) {
  if (s.is_complex()) return -s.to<std::complex<double>>();
  return s.is_integral() ? Scalar(-s.to<int64_t>()) : Scalar(-s.to<double>());
}

bool is_one(Scalar s) { return s.to<std::complex<double>>() == 1.0; }
Tensor times(const Tensor& tensor, Scalar factor) {
  return is_one(factor) ? tensor : tensor * factor;
}

// The dense tensor plus the elements of the sparse one, in place when `into` is the dense one.
Tensor add_to_dense(const Tensor& dense, const Tensor& sparse, Scalar alpha, const Tensor* into) {
  CHECK(!dense.impl()->wrapped_number, ErrorKind::kNotImplemented,
        "a number and a sparse tensor would give a dense one. Use to_dense(), or add to values().");
  const Tensor* operands[] = {&dense, &sparse};
  DType dtype = result_dtype(operands);
  if (pattern_of(sparse)->sparse_dim() == 0) return add(dense, to_dense(sparse), alpha);
  Tensor target;
  if (into && dense.dtype() == dtype && dense.sizes() == sparse.sizes()) {
    check_writable(*into);
    target = *into;
  } else {
    target = clone(expand(cast(dense, dtype), sparse.sizes()));
  }
  Tensor values = cast(times(sparse_values(sparse), alpha), dtype);
  return add_entries_(contiguous(target), *pattern_of(sparse), values);
}

bool is_empty_coo(const Tensor& sparse) {
  return layout_of(sparse) == Layout::sparse_coo && pattern_of(sparse)->count() == 0;
}

Tensor add_sparse(const Tensor& input, const Tensor& other, Scalar alpha) {
  int64_t dims = pattern_of(input)->sparse_dim(), other_dims = pattern_of(other)->sparse_dim();
  if (dims != other_dims && is_empty_coo(input))
    return add_sparse(empty_coo(input.sizes(), other_dims, input.dtype()), other, alpha);
  if (dims != other_dims && is_empty_coo(other))
    return add_sparse(input, empty_coo(other.sizes(), dims, other.dtype()), alpha);
  check_same_shape(input, other);
  const Tensor* operands[] = {&input, &other};
  DType dtype = result_dtype(operands);
  Tensor left = cast(sparse_values(input), dtype);
  Tensor right = cast(times(sparse_values(other), alpha), dtype);
  if (pattern_of(input) == pattern_of(other)) return sparse_like(left + right, input);
  Layout layout = layout_of(input);
  if (layout != Layout::sparse_coo)
    return to_layout_of(input, add_sparse(to_layout(input, Layout::sparse_coo),
                                          to_layout(other, Layout::sparse_coo), alpha));
  if (layout_of(other) != layout) return add_sparse(input, to_layout(other, layout), alpha);
  const SparsePattern &a = *pattern_of(input), &b = *pattern_of(other);
  Tensor indices = cat(std::array{a.indices(), b.indices()}, 1);
  Tensor sum = sparse_coo(indices, cat(std::array{left, right}, 0), a.sizes(), false);
  return a.coalesced() && b.coalesced() ? coalesced(sum) : sum;
}

bool differ_in_dense_dims(const Tensor& a, const Tensor& b) {
  return a.dim() == b.dim() && layout_of(a) == Layout::sparse_coo &&
         layout_of(b) == Layout::sparse_coo && pattern_of(a)->sizes() == pattern_of(b)->sizes();
}

// The products where both have an entry. Dense dims and 0-d tensors broadcast.
Tensor mul_sparse(const Tensor& input, const Tensor& other) {
  if (other.dim() == 0 && input.dim() > 0) return sparse_mul(input, to_dense(other));
  if (input.dim() == 0 && other.dim() > 0) return sparse_mul(to_dense(input), other);
  if (!differ_in_dense_dims(input, other)) check_same_shape(input, other);
  if (pattern_of(input) == pattern_of(other) && pattern_of(input)->coalesced())
    return sparse_like(sparse_values(input) * sparse_values(other), input);
  if (has_blocks(layout_of(input)) || has_blocks(layout_of(other)))
    return to_layout_of(input, mul_sparse(to_layout(input, Layout::sparse_coo),
                                          to_layout(other, Layout::sparse_coo)));
  Tensor a = coalesced(input), b = coalesced(other);
  Tensor found = find_entries(*pattern_of(a), *pattern_of(b));
  Tensor kept = squeeze(nonzero(found >= 0), 1);
  Tensor values = take_entries(sparse_values(a), kept) *
                  take_entries(sparse_values(b), take_entries(found, kept));
  Tensor indices = call<"index_select", Tensor>(pattern_of(a)->indices(), int64_t(1), kept);
  bool in_order = !is_by_columns(layout_of(a));
  Tensor product = sparse_coo(indices, values, pattern_of(a)->sizes(), in_order);
  return to_layout(coalesced(product), layout_of(input));
}

// The entries by all sparse dims but one.
SparsePattern::Ptr without_dim(const SparsePattern& pattern, int64_t dim) {
  std::vector<Tensor> rows = index_rows(pattern);
  Shape sizes = pattern.sizes();
  rows.erase(rows.begin() + dim);
  sizes.erase(size_t(dim));
  return SparsePattern::coo(
      rows.empty() ? empty(Shape{0, pattern.count()}, DType::int64) : stack(rows, 0), sizes, false);
}

Tensor softmax_of_entries(const Tensor& input, int64_t dim, bool logarithm) {
  Tensor entries = coalesced(to_layout(input, Layout::sparse_coo));
  const SparsePattern& pattern = *pattern_of(entries);
  Tensor values = sparse_values(entries);
  dim = wrap_dim(dim, input.dim());
  if (dim >= pattern.sparse_dim()) {
    int64_t at = dim - pattern.sparse_dim() + 1;
    return sparse_like(logarithm ? log_softmax(values, at) : softmax(values, at), entries);
  }
  EntryGroups groups = group_entries(*without_dim(pattern, dim));
  const Tensor group[] = {groups.group};
  Shape sizes = values.sizes(), ones(values.sizes().size(), 1);
  sizes[0] = groups.indices.size(1);
  ones[0] = pattern.count();
  Tensor most = full(sizes, -INFINITY, values.dtype());
  call<"_scatter_extreme_", Tensor>(
      most, int64_t(0), expand(view(groups.group, ones), values.sizes()), detach(values), true);
  Tensor shifted = values - index(most, group), powers = exp(shifted);
  Tensor sums = index(index_put_(zeros(sizes, values.dtype()), group, powers, true), group);
  return sparse_like(logarithm ? shifted - log(sums) : powers / sums, entries);
}

}  // namespace

Tensor sparse_add(const Tensor& input, const Tensor& other, Scalar alpha, const Tensor* into) {
  if (input.is_sparse() && other.is_sparse()) return add_sparse(input, other, alpha);
  if (other.is_sparse()) return add_to_dense(input, other, alpha, into);
  if (other.impl()->wrapped_number) return add_to_dense(other, input, 1, nullptr);
  return add_to_dense(times(other, alpha), input, 1, nullptr);
}

Tensor sparse_sub(const Tensor& input, const Tensor& other, Scalar alpha, const Tensor* into) {
  return sparse_add(input, other, negative(alpha), into);
}

Tensor sparse_mul(const Tensor& input, const Tensor& other) {
  if (input.is_sparse() && other.is_sparse()) return mul_sparse(input, other);
  const Tensor& sparse = input.is_sparse() ? input : other;
  const Tensor& dense = input.is_sparse() ? other : input;
  if (dense.dim() == 0) return sparse_like(sparse_values(sparse) * dense, sparse);
  return sparse_like(sparse_values(sparse) * elements_at(expand(dense, sparse.sizes()), sparse),
                     sparse);
}

Tensor sparse_div(const Tensor& input, const Tensor& other) {
  CHECK(input.is_sparse() && !other.is_sparse() && other.dim() == 0, ErrorKind::kNotImplemented,
        "a sparse tensor can be divided by a number or a 0-d tensor only. Use mul with the "
        "reciprocal, or to_dense().");
  return sparse_like(div(sparse_values(input), other), input);
}

Tensor sparse_pow(const Tensor& input, const Tensor& exponent) {
  CHECK(input.is_sparse() && !exponent.is_sparse() && exponent.dim() == 0 &&
            item(exponent).to<std::complex<double>>().real() > 0,
        ErrorKind::kNotImplemented,
        "a sparse tensor can be raised to a positive number only, "
        "which keeps zeros. Use to_dense().");
  Tensor entries = coalesced(input);
  return sparse_like(pow(sparse_values(entries), exponent), entries);
}

Tensor sparse_sum(const Tensor& input, std::optional<ShapeRef> dim, bool keepdim,
                  std::optional<DType> dtype) {
  const SparsePattern& pattern = *pattern_of(input);
  DimSet dims = reduced_dims(dim, input.dim());
  bool all_sparse = true;
  for (int64_t d = 0; d < pattern.sparse_dim(); ++d) all_sparse &= dims[size_t(d)];
  if (has_blocks(layout_of(input)) && !all_sparse)
    return sparse_sum(to_layout(input, Layout::sparse_coo), dim, keepdim, dtype);
  int64_t block_dims = int64_t(pattern.block().size());
  Tensor values = cast(sparse_values(input), sum_dtype(input, dtype));
  Shape value_dims, sizes;
  std::vector<Tensor> rows = index_rows(pattern), kept;
  for (int64_t d = 0; d < input.dim(); ++d) {
    bool summed = dims[size_t(d)];
    if (d >= pattern.sparse_dim()) {
      if (summed) value_dims.push_back(d - pattern.sparse_dim() + 1 + block_dims);
      continue;
    }
    if (summed && !keepdim) continue;
    sizes.push_back(summed ? 1 : input.sizes()[size_t(d)]);
    kept.push_back(summed ? zeros(Shape{pattern.count()}, DType::int64) : rows[size_t(d)]);
  }
  if (all_sparse) {
    for (int64_t d = 0; d <= block_dims; ++d) value_dims.push_back(d);
    Tensor total = sum(values, value_dims);
    return keepdim ? reshape(total, reduced_sizes(input.sizes(), dims, true)) : total;
  }
  if (!value_dims.empty()) values = sum(values, value_dims, keepdim);
  Tensor result = coalesced(sparse_coo(stack(kept, 0), values, sizes, false));
  return keepdim ? to_layout(result, layout_of(input)) : result;
}

Tensor sparse_norm(const Tensor& input, std::optional<Scalar> p, std::optional<ShapeRef> dim,
                   bool keepdim, std::optional<DType> dtype) {
  CHECK(!dim && !keepdim && p.value_or(2).to<double>() >= 0, ErrorKind::kNotImplemented,
        "the norm of a sparse tensor is that of all its elements, of an order not below 0. Leave "
        "dim and keepdim out, or use to_dense().");
  return call<"norm", Tensor>(sparse_values(coalesced(input)), p, dim, keepdim, dtype);
}

OP(_sparse_softmax, "(Tensor input, int dim, bool logarithm) -> Tensor", {
  .home    = "private",
  .doc     = R"(The softmax, or its logarithm, over the entries along dim: others count as -inf.)",
  .dtypes  = floating,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, int64_t dim, bool logarithm) {
    CHECK(input.is_sparse(), "expected a sparse tensor, but got one of layout strided. Use "
                             "torch.softmax().");
    return softmax_of_entries(input, dim, logarithm);
  },
})

}  // namespace rushlight
