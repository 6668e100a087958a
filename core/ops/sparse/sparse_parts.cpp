// Owns how sparse tensors are taken apart: the ops that give their indices, values and counts.
#include "core/ops/op.h"
#include "core/ops/sparse/sparse.h"
#include "core/ops/sparse/sparse_batch.h"
#include "core/ops/sparse/sparse_checks.h"

namespace rushlight {
namespace {

const SparsePattern& expect_coalesced(const Tensor& input, const char* part) {
  const SparsePattern& pattern = expect_coo(input);
  CHECK(pattern.coalesced(), "Cannot get ", part,
        " on an uncoalesced tensor, please call .coalesce() first");
  return pattern;
}

// Another handle, so that what is done to the caller's leaves the pattern's as it is.
Tensor handed_out(const Tensor& indices) { return shallow_copy(indices); }

// Where lines begin, or the plain indices, of a tensor compressed by rows or by columns.
Tensor compressed_part(const Tensor& input, bool columns, bool start) {
  Layout layout = layout_of(input);
  CHECK(layout >= Layout::sparse_csr && is_by_columns(layout) == columns,
        "expected a tensor of layout ",
        columns ? "sparse_csc or sparse_bsc" : "sparse_csr or sparse_bsr", ", but got ",
        layout_name(layout), ".");
  const SparsePattern& pattern = *pattern_of(input);
  return handed_out(start ? starts_by_matrix(pattern) : others_by_matrix(pattern));
}

}  // namespace

OP(values, "(Tensor input) -> Tensor", {
  .doc     = R"(The values of a sparse tensor by entry; a COO tensor must be coalesced.

Those of a batch of compressed matrices are by matrix: (batch..., entries, ...).)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    if (layout_of(expect_sparse(input)) == Layout::sparse_coo) expect_coalesced(input, "values");
    return values_by_matrix(input);
  },
})

OP(_values, "(Tensor input) -> Tensor", {
  .doc     = R"(The values of a COO tensor without their history.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    expect_coo(input);
    return plain_values_of(input);
  },
})

OP(indices, "(Tensor input) -> Tensor", {
  .doc     = R"(The indices of a coalesced COO tensor, (sparse dims, entries), read-only.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    return handed_out(expect_coalesced(input, "indices").indices());
  },
})

OP(_indices, "(Tensor input) -> Tensor", {
  .doc     = R"(The indices of a COO tensor, coalesced or not, read-only.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) { return handed_out(expect_coo(input).indices()); },
})

OP(crow_indices, "(Tensor input) -> Tensor", {
  .doc     = R"(Where the entries of each row of a CSR or BSR matrix begin and end.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) { return compressed_part(input, false, true); },
})

OP(col_indices, "(Tensor input) -> Tensor", {
  .doc     = R"(The columns of the entries of a CSR or BSR matrix.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) { return compressed_part(input, false, false); },
})

OP(ccol_indices, "(Tensor input) -> Tensor", {
  .doc     = R"(Where the entries of each column of a CSC or BSC matrix begin and end.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) { return compressed_part(input, true, true); },
})

OP(row_indices, "(Tensor input) -> Tensor", {
  .doc     = R"(The rows of the entries of a CSC or BSC matrix.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) { return compressed_part(input, true, false); },
})

OP(is_coalesced, "(Tensor input) -> bool", {
  .doc     = R"(Whether a COO tensor is known to have its entries in order, none of them twice.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) { return expect_coo(input).coalesced(); },
})

OP(_coalesced_, "(Tensor! input, bool coalesced) -> Tensor", {
  .doc     = R"(Notes whether the entries are in order, none of them twice, which is checked.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, bool is_coalesced) {
    const SparsePattern& pattern = expect_coo(input);
    const Tensor &indices = pattern.indices(), &values = plain_values_of(input);
    checked_coo(indices, values, ShapeRef(input.sizes()), is_coalesced);
    take_parts(input, make_sparse(SparsePattern::coo(indices, pattern.sizes(), is_coalesced),
                                  values));
    return input;
  },
})

OP(_nnz, "(Tensor input) -> int", {
  .doc     = R"(The number of entries of a sparse tensor; of a batch of matrices, that of each.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    return entries_of_matrix(*pattern_of(expect_sparse(input)));
  },
})

OP(sparse_dim, "(Tensor input) -> int", {
  .doc     = R"(The number of dims that have indices; 0 for a dense tensor.

Those of a batch of compressed matrices do not count.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    if (!input.is_sparse()) return int64_t(0);
    return pattern_of(input)->sparse_dim() - pattern_of(input)->batch_dims();
  },
})

OP(dense_dim, "(Tensor input) -> int", {
  .doc     = R"(The number of dims that each value has; all of them for a dense tensor.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    return input.dim() - (input.is_sparse() ? pattern_of(input)->sparse_dim() : 0);
  },
})

}  // namespace rushlight
