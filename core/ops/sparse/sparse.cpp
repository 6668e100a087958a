// Owns how sparse tensors are made of indices and values, and brought from one layout to another.
// See Note [Sparse tensors] in tensor/sparse.h.
#include "core/ops/sparse/sparse.h"

#include <algorithm>

#include "core/autograd/needs.h"
#include "core/ops/index/index.h"
#include "core/ops/op.h"
#include "core/ops/sparse/sparse_batch.h"
#include "core/ops/sparse/sparse_checks.h"

namespace rushlight {
namespace {

// A compressed tensor by its rows or columns, from any sparse tensor with entries of that kind:
// blocks are the first dense dims of a COO one.
Tensor compress(const Tensor& input, Layout layout) {
  Tensor matrix = coalesced(input);
  const SparsePattern& from = *pattern_of(matrix);
  Tensor values = sparse_values(matrix);
  EntryOrder lines = from.by(is_by_columns(layout));
  check_equal_counts(lines, from.sizes());
  if (lines.entry.defined()) values = take_entries(values, lines.entry);
  lines.entry = {};
  auto block = values.sizes().begin() + 1;
  return in_pattern(SparsePattern::compressed(layout, lines, from.sizes(), true,
                                              Shape(block, block + (has_blocks(layout) ? 2 : 0))),
                    values);
}

// A COO tensor of all elements of one of blocks.
Tensor elements_of_blocks(const Tensor& input) {
  const SparsePattern& pattern = *pattern_of(input);
  int64_t rows = pattern.block()[0], columns = pattern.block()[1], count = pattern.count();
  int64_t dims = pattern.sparse_dim(), elements = count * rows * columns;
  Tensor indices = empty(Shape{dims, elements}, DType::int64);
  const int64_t* from = pattern.indices().data<int64_t>();
  int64_t* to = indices.data<int64_t>();
  for (int64_t d = 0; d < dims; ++d, from += count) {
    bool is_row = d == dims - 2, is_column = d == dims - 1;
    int64_t size = is_row ? rows : is_column ? columns : 1;
    for (int64_t k = 0; k < count; ++k)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) *to++ = from[k] * size + is_row * r + is_column * c;
  }
  Tensor values = sparse_values(input);
  Shape value_sizes(values.sizes().begin() + 2, values.sizes().end());
  value_sizes[0] = elements;
  ShapeRef sizes = input.sizes();
  return sparse_coo(indices, reshape(values, value_sizes), sizes.first(size_t(dims)), false);
}

// A COO tensor whose entries are the blocks of another one's elements, in its first dense dims.
Tensor blocks_of_elements(const Tensor& input, ShapeRef block) {
  const SparsePattern& pattern = *pattern_of(input);
  int64_t count = pattern.count(), batch_dims = pattern.sparse_dim() - 2;
  Tensor outer = clone_dense(pattern.indices()), inner = empty(Shape{2, count}, DType::int64);
  int64_t *number = outer.data<int64_t>() + batch_dims * count, *place = inner.data<int64_t>();
  Shape sizes = pattern.sizes();
  for (size_t d = 0; d < 2; ++d) {
    sizes[size_t(batch_dims) + d] /= block[d];
    for (int64_t k = 0; k < count; ++k, ++number, ++place) {
      *place = *number % block[d];
      *number /= block[d];
    }
  }
  EntryGroups groups = group_entries(*SparsePattern::coo(outer, sizes, false));
  Tensor places[] = {groups.group, select(inner, 0, 0), select(inner, 0, 1)};
  Tensor values = sparse_values(input);
  Shape value_sizes{groups.indices.size(1), block[0], block[1]};
  for (int64_t d = 1; d < values.dim(); ++d) value_sizes.push_back(values.size(d));
  values = index_put_(zeros(value_sizes, input.dtype()), places, values, true);
  return sparse_coo(groups.indices, values, sizes, true);
}

// What a compressed layout asks of a tensor, of whose dims the first `sparse_dim` have indices.
void check_matrices(const Tensor& input, Layout layout, int64_t sparse_dim) {
  CHECK(sparse_dim >= 2 && sparse_dim <= input.dim(), "only matrices and batches of them can be ",
        layout_name(layout), ", not a tensor of shape ", input.sizes(),
        " with dense_dim=", input.dim() - sparse_dim, ". Two dims at least must have indices.");
}

// The sizes of a block in a layout, which must fit matrices from dim `row_dim` on.
void check_block(const Tensor& input, Layout layout, ShapeRef block, int64_t row_dim) {
  if (!has_blocks(layout)) {
    CHECK(block.empty(), "conversion from ", layout_name(layout_of(input)), " to ",
          layout_name(layout), " with blocksize argument given is not supported. Leave it out.");
    return;
  }
  CHECK(!block.empty(), "conversion from ", layout_name(layout_of(input)), " to ",
        layout_name(layout),
        " without blocksize argument given is not supported. Pass the rows "
        "and columns of a block.");
  CHECK(block[0] > 0 && block[1] > 0, "blocksize needs to be positive, but got ", ShapeText{block},
        ".");
  CHECK(input.size(row_dim) % block[0] == 0 && input.size(row_dim + 1) % block[1] == 0,
        "tensor sparse size ", input.sizes(), " must be divisible by given blocksize ",
        ShapeText{block}, ". Pad the matrix, or pass other sizes.");
}

Tensor to_coo(const Tensor& dense, int64_t sparse_dim) {
  CHECK(sparse_dim >= 0 && sparse_dim <= dense.dim() && (sparse_dim > 0 || dense.dim() == 0),
        "sparse_dim must be from 1 to ", dense.dim(), ", the dims of the tensor, but got ",
        sparse_dim, ".");
  ShapeRef sizes = dense.sizes();
  if (dense.dim() == 0)
    return sparse_coo(empty(Shape{0, 1}, DType::int64), unsqueeze(dense, 0), sizes, true);
  Tensor used = detach(dense) != 0;
  Shape dense_dims;
  for (int64_t d = sparse_dim; d < dense.dim(); ++d) dense_dims.push_back(d);
  if (!dense_dims.empty())
    used = call<"any", Tensor>(used, std::optional<ShapeRef>(dense_dims), false);
  Tensor indices = to_contiguous(transpose(nonzero_places(used), 0, 1));
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < sparse_dim; ++d) rows.push_back(select(indices, 0, d));
  return sparse_coo(indices, index(dense, rows), sizes.first(size_t(sparse_dim)), true);
}

}  // namespace

void detail::replace(const Tensor& self, const Tensor& result) {
  if (!self.is_sparse()) {
    needs::copy_(self, result.is_sparse() ? to_dense(result) : result);
    return;
  }
  CHECK(layout_of(result) == layout_of(self), "the result has layout ",
        layout_name(layout_of(result)), " and cannot be written to a tensor of layout ",
        layout_name(layout_of(self)), ". Use the form without the underscore.");
  Tensor fitting = cast(result, self.dtype());
  take_parts(self, fitting);
  if (Edge edge = gradient_edge(fitting); edge.node) set_history(self, edge.node, edge.slot);
}

Tensor take_entries(const Tensor& values, const Tensor& entries) {
  const Tensor indices[] = {entries};
  return index(values, indices);
}

Tensor find_entries(const SparsePattern& wanted, const SparsePattern& in) {
  Tensor sorted = sorted_entries(in), places = places_of(in), keys = places_of(wanted);
  Tensor found = empty(Shape{wanted.count()}, DType::int64);
  const int64_t *entry = sorted.data<int64_t>(), *place = places.data<int64_t>();
  const int64_t *key = keys.data<int64_t>(), *end = entry + in.count();
  for (int64_t k = 0; k < wanted.count(); ++k) {
    const int64_t* at = std::lower_bound(
        entry, end, key[k],
        [&](int64_t candidate, int64_t sought) { return place[candidate] < sought; });
    found.data<int64_t>()[k] = at != end && place[*at] == key[k] ? *at : -1;
  }
  return found;
}

EntryGroups group_entries(const SparsePattern& pattern) {
  int64_t count = pattern.count(), distinct = 0;
  EntryGroups groups{{}, sorted_entries(pattern), empty(Shape{count}, DType::int64)};
  Tensor places = places_of(pattern);
  const int64_t *entry = groups.entries.data<int64_t>(), *place = places.data<int64_t>();
  int64_t* group = groups.group.data<int64_t>();
  std::vector<int64_t> first;
  for (int64_t k = 0; k < count; ++k) {
    if (k == 0 || place[entry[k]] != place[entry[k - 1]]) {
      first.push_back(entry[k]);
      ++distinct;
    }
    group[entry[k]] = distinct - 1;
  }
  groups.indices = empty(Shape{pattern.sparse_dim(), distinct}, DType::int64);
  const int64_t* from = pattern.indices().data<int64_t>();
  int64_t* to = groups.indices.data<int64_t>();
  for (int64_t d = 0; d < pattern.sparse_dim(); ++d, from += count)
    for (int64_t k = 0; k < distinct; ++k) *to++ = from[first[size_t(k)]];
  return groups;
}

std::vector<Tensor> index_rows(const SparsePattern& pattern) {
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < pattern.sparse_dim(); ++d)
    rows.push_back(alias(pattern.indices(), Shape{pattern.count()}, Shape{1}, d * pattern.count()));
  return rows;
}

Tensor in_pattern(const SparsePattern::Ptr& pattern, const Tensor& values) {
  return call<"_sparse_like", Tensor>(values, bare_pattern(make_sparse(pattern, values)));
}

Tensor sparse_coo(const Tensor& indices, const Tensor& values, ShapeRef sparse_sizes,
                  bool coalesced) {
  return in_pattern(SparsePattern::coo(indices, sparse_sizes, coalesced), values);
}

Tensor coalesced(const Tensor& sparse) {
  const SparsePattern& pattern = *pattern_of(sparse);
  if (pattern.coalesced()) return sparse;
  if (!pattern.is_coo()) {
    Tensor entries = sparse_coo(pattern.indices(), sparse_values(sparse), pattern.sizes(), false);
    return compress(entries, pattern.layout());
  }
  EntryGroups groups = group_entries(pattern);
  Tensor values = sparse_values(sparse);
  int64_t distinct = groups.indices.size(1);
  if (distinct == pattern.count()) {
    values = take_entries(values, groups.entries);
  } else {
    Shape sizes = values.sizes();
    sizes[0] = distinct;
    const Tensor group[] = {groups.group};
    values = index_put_(zeros(sizes, values.dtype()), group, values, true);
  }
  return sparse_coo(groups.indices, values, pattern.sizes(), true);
}

Tensor in_blocks(const Tensor& tensor, ShapeRef block, int64_t row_dim) {
  if (block.empty()) return tensor;
  Shape sizes = tensor.sizes();
  for (size_t b : {1, 0}) {
    size_t d = size_t(row_dim) + b;
    sizes[d] /= block[b];
    sizes.insert(d + 1, block[b]);
  }
  return transpose(reshape(tensor, sizes), row_dim + 1, row_dim + 2);
}

Tensor add_entries_(const Tensor& dense, const SparsePattern& pattern, const Tensor& values) {
  Tensor places = in_blocks(dense, pattern.block(), pattern.sparse_dim() - 2);
  index_put_(places, index_rows(pattern), values, true);
  return dense;
}

Tensor to_dense(const Tensor& sparse) {
  const SparsePattern& pattern = *pattern_of(sparse);
  Tensor values = sparse_values(sparse);
  if (pattern.sparse_dim() == 0) return cast(sum(values, Shape{0}), sparse.dtype());
  return add_entries_(zeros(sparse.sizes(), sparse.dtype()), pattern, values);
}

Tensor to_layout(const Tensor& input, Layout layout, std::optional<int64_t> sparse_dim,
                 ShapeRef block) {
  Layout from = layout_of(input);
  const SparsePattern* pattern = input.is_sparse() ? pattern_of(input).get() : nullptr;
  int64_t kept = pattern ? pattern->sparse_dim() - pattern->batch_dims() : 0;
  CHECK(!sparse_dim || !pattern || *sparse_dim == kept,
        "a sparse tensor keeps its number of sparse dims, ", kept, ". Leave sparse_dim out.");
  Shape own = pattern ? pattern->block() : Shape{}, wanted = block;
  if (block.empty() && has_blocks(layout)) wanted = own;
  int64_t dims = pattern ? pattern->sparse_dim() : sparse_dim.value_or(input.dim());
  if (layout >= Layout::sparse_csr) check_matrices(input, layout, dims);
  check_block(input, layout, wanted, dims - 2);
  if (from == layout && own == wanted) return input;
  if (layout == Layout::strided) return to_dense(input);
  if (layout == Layout::sparse_coo) {
    if (!pattern) return to_coo(input, dims);
    bool in_order = pattern->coalesced() && from == Layout::sparse_csr;
    Tensor coo = has_blocks(from) ? elements_of_blocks(input)
                                  : sparse_coo(pattern->indices(), sparse_values(input),
                                               pattern->sizes(), in_order);
    return pattern->coalesced() ? coalesced(coo) : coo;
  }
  if (!pattern) return compress(to_coo(in_blocks(input, wanted, dims - 2), dims), layout);
  if (own == wanted) return compress(input, layout);
  Tensor coo = to_layout(input, Layout::sparse_coo);
  return compress(wanted.empty() ? coo : blocks_of_elements(coo, wanted), layout);
}

Tensor elements_at(const Tensor& input, const Tensor& pattern) {
  const SparsePattern& wanted = *pattern_of(pattern);
  CHECK(input.sizes() == pattern.sizes(), "a tensor of shape ", input.sizes(),
        " has no elements in the places of a sparse tensor of shape ", pattern.sizes(),
        ". Both must have the same shape.");
  if (!input.is_sparse()) {
    if (wanted.sparse_dim() > 0)
      return index(in_blocks(input, wanted.block(), wanted.sparse_dim() - 2), index_rows(wanted));
    Shape sizes = input.sizes();
    sizes.insert(0, wanted.count());
    return expand(input, sizes);
  }
  if (pattern_of(input) == pattern_of(pattern)) return sparse_values(input);
  if (pattern_of(input)->sparse_dim() != wanted.sparse_dim())
    return elements_at(to_dense(input), pattern);
  Tensor source = input;
  if (pattern_of(input)->block() != wanted.block()) {
    source = to_layout(input, Layout::sparse_coo);
    if (!wanted.block().empty()) source = blocks_of_elements(source, wanted.block());
  }
  source = coalesced(source);
  Tensor values = sparse_values(source);
  if (values.size(0) == 0) {
    Shape sizes = values.sizes();
    sizes[0] = wanted.count();
    return zeros(sizes, values.dtype());
  }
  Tensor found = find_entries(wanted, *pattern_of(source));
  Tensor exists = found >= 0;
  for (int64_t d = 1; d < values.dim(); ++d) exists = unsqueeze(exists, -1);
  return where(exists, take_entries(values, max(found, wrapped_number(0))),
               zeros({}, values.dtype()));
}

// ---- the two ops that every gradient of a sparse tensor goes through ----------------------------

OP(_sparse_values, "(Tensor input, Tensor pattern) -> Tensor", {
  .home    = "core",
  .doc     = R"(The values of a sparse tensor, (entries, dense dims...). They share its memory.)",
  .seen    = Seen::never,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& pattern) {
    CHECK(pattern_of(expect_sparse(input)) == pattern_of(expect_sparse(pattern)),
          "expected the pattern of the tensor.");
    return plain_values_of(input);
  },
  .saves   = saves<"pattern">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor& pattern) {
                     return sparse_like(g, pattern);
                   }),
                   no_grad<"pattern">),
})

OP(_sparse_like, "(Tensor values, Tensor pattern) -> Tensor", {
  .home    = "core",
  .doc     = R"(A sparse tensor of these values with the entries of another one.)",
  .seen    = Seen::never,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& values, const Tensor& pattern) {
    expect_sparse(pattern);
    const Shape &sizes = values.sizes(), &block = pattern_of(pattern)->block();
    bool fits = sizes.size() > block.size() && sizes[0] == pattern_of(pattern)->count() &&
                std::equal(block.begin(), block.end(), sizes.begin() + 1);
    CHECK(!values.is_sparse() && fits, "expected values for ", pattern_of(pattern)->count(),
          " entries, but got shape ", sizes, ".");
    return make_sparse(pattern_of(pattern), to_contiguous(values));
  },
  .saves   = saves<"pattern">,
  .grads   = grads(d<"values">([](const Tensor& g, const Tensor& pattern) {
                     return elements_at(g, pattern);
                   }),
                   no_grad<"pattern">),
})

// ---- making -------------------------------------------------------------------------------------

OP(_sparse_coo_tensor,
   "(Tensor indices, Tensor values, int[]? size=None, bool? is_coalesced=None) -> Tensor", {
  .home    = "private",
  .doc     = R"(A COO tensor of indices, (sparse dims, entries), and values, (entries, ...).)",
  .gpu     = none<"sparse tensors live on the CPU">,
  .forward = [](const Tensor& indices, const Tensor& values, std::optional<ShapeRef> size,
                std::optional<bool> is_coalesced) {
    bool in_order = is_coalesced.value_or(values.dim() > 0 && values.size(0) < 2);
    CooParts parts = checked_coo(indices, values, size, in_order);
    return sparse_coo(parts.indices, values, parts.sparse_sizes, in_order);
  },
})

OP(_sparse_compressed_tensor, "(Tensor compressed_indices, Tensor plain_indices, Tensor values, "
                              "int[]? size=None, int layout=2) -> Tensor", {
  .home    = "private",
  .doc     = R"(A matrix, or a batch, in a compressed layout, given by its number.)",
  .gpu     = none<"sparse tensors live on the CPU">,
  .forward = [](const Tensor& compressed_indices, const Tensor& plain_indices,
                const Tensor& values, std::optional<ShapeRef> size, int64_t layout) {
    CHECK(layout >= int64_t(Layout::sparse_csr) && layout < kLayouts,
          "there is no compressed layout ", layout, ".");
    CompressedParts parts =
        checked_compressed(compressed_indices, plain_indices, values, size, Layout(layout));
    auto pattern = SparsePattern::compressed(Layout(layout), parts.lines, parts.sizes,
                                             parts.in_order, parts.block);
    return in_pattern(pattern, by_entry(values, pattern->batch_dims()));
  },
})

OP(_to_layout,
   "(Tensor input, int layout, int? sparse_dim=None, int[]? blocksize=None) -> Tensor", {
  .home    = "private",
  .doc     = R"(The tensor in another layout, by its number; itself when it has that.)",
  .seen    = Seen::whole_unrecorded,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, int64_t layout, std::optional<int64_t> sparse_dim,
                std::optional<ShapeRef> blocksize) {
    CHECK(layout >= 0 && layout < kLayouts, "there is no layout ", layout);
    CHECK(!blocksize || blocksize->size() == 2, "blocksize needs to be a tuple of size 2, but got ",
          ShapeText{blocksize.value_or(ShapeRef{})}, ". It has the rows and columns of a block.");
    return to_layout(input, Layout(layout), sparse_dim, blocksize.value_or(ShapeRef{}));
  },
})

OP(to_dense, "(Tensor input, dtype? dtype=None, *, bool? masked_grad=None) -> Tensor", {
  .doc     = R"(The tensor with all its elements in memory; a dense tensor itself.

Example:
    >>> torch.eye(2).to_sparse().to_dense()
    tensor([[1., 0.],
            [0., 1.]]))",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, std::optional<DType> dtype, std::optional<bool> masked_grad) {
    bool is_differentiated = is_grad_enabled() && gradient_edge_exists(input);
    CHECK(masked_grad.value_or(true) || !input.is_sparse() || !is_differentiated,
          ErrorKind::kNotImplemented,
          "masked_grad=False is not supported: the gradient of a sparse tensor has the entries of "
          "the tensor. Differentiate a dense one where other places need gradients.");
    Tensor dense = input.is_sparse() ? to_dense(input) : input;
    return dtype ? cast(dense, *dtype) : dense;
  },
})

OP(coalesce, "(Tensor input) -> Tensor", {
  .doc     = R"(A COO tensor with its entries in order and those of equal indices added up.

Example:
    >>> torch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (2,)).coalesce().values()
    tensor([5.]))",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) {
    expect_coo(input);
    return coalesced(input);
  },
})

OP(sparse_mask, "(Tensor input, Tensor mask) -> Tensor", {
  .doc     = R"(The elements of input at the entries of a sparse tensor, as a sparse tensor.)",
  .variants = method,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& mask) {
    Tensor places = coalesced(expect_sparse(mask));
    return sparse_like(elements_at(input, places), places);
  },
})

}  // namespace rushlight
