// Declares what the ops on sparse tensors share, and the forms of other ops for sparse tensors.
//
// See Note [Sparse tensors] in tensor/sparse.h. Everything here records what it does.
#pragma once

#include "core/ops/ops.h"
#include "core/tensor/sparse.h"

namespace rushlight {

// sparse.cpp
// The values of a sparse tensor, by entry.
inline Tensor sparse_values(const Tensor& sparse) {
  return call<"_sparse_values", Tensor>(sparse, bare_pattern(sparse));
}
// A sparse tensor with the pattern of another one and these values.
inline Tensor sparse_like(const Tensor& values, const Tensor& pattern) {
  return call<"_sparse_like", Tensor>(values, bare_pattern(pattern));
}
// With entries in order, of which equal ones were added; the tensor itself when it is so.
Tensor coalesced(const Tensor& sparse);
Tensor to_dense(const Tensor& sparse);
// In another layout; `block` has the sizes of a block where it has blocks. `sparse_dim` is how many
// dims of a dense tensor get indices, those of a batch among them: all unless said.
Tensor to_layout(const Tensor& input, Layout layout, std::optional<int64_t> sparse_dim = {},
                 ShapeRef block = {});
// In the layout of another sparse tensor, with blocks of its sizes.
inline Tensor to_layout_of(const Tensor& like, const Tensor& input) {
  return to_layout(input, layout_of(like), {}, pattern_of(like)->block());
}
// A view of a tensor (..., R, C, ...), where R is dim `row_dim`, as (..., R / r, C / c, r, c, ...),
// for blocks (r, c); itself without blocks.
Tensor in_blocks(const Tensor& tensor, ShapeRef block, int64_t row_dim);
// Adds values at the entries of a pattern to a contiguous dense tensor, in place.
Tensor add_entries_(const Tensor& dense, const SparsePattern& pattern, const Tensor& values);
// Values in the places of a pattern.
Tensor in_pattern(const SparsePattern::Ptr& pattern, const Tensor& values);
// A COO tensor of indices that hold already.
Tensor sparse_coo(const Tensor& indices, const Tensor& values, ShapeRef sparse_sizes,
                  bool coalesced);
// The elements of a dense or sparse tensor at the entries of a sparse one, by entry.
Tensor elements_at(const Tensor& input, const Tensor& pattern);
// The indices of the entries by sparse dim.
std::vector<Tensor> index_rows(const SparsePattern& pattern);
// Rows of values, or of indices, by number of entry.
Tensor take_entries(const Tensor& values, const Tensor& entries);
// Where the entries of one pattern stand among those of another, of which none comes twice; -1
// where they are not.
Tensor find_entries(const SparsePattern& wanted, const SparsePattern& in);
// Entries of equal indices become one: `entries` is their order, `group` the new entry of each.
struct EntryGroups {
  Tensor indices, entries, group;
};
EntryGroups group_entries(const SparsePattern& pattern);

// sparse_matmul.cpp
Tensor sparse_mm(const Tensor& input, const Tensor& mat2);
Tensor sparse_bmm(const Tensor& input, const Tensor& mat2);
Tensor sparse_linear(const Tensor& input, const Tensor& weight, const Tensor& bias);

// sparse_math.cpp
Tensor sparse_add(const Tensor& input, const Tensor& other, Scalar alpha, const Tensor* into);
Tensor sparse_sub(const Tensor& input, const Tensor& other, Scalar alpha, const Tensor* into);
Tensor sparse_mul(const Tensor& input, const Tensor& other);
Tensor sparse_div(const Tensor& input, const Tensor& other);
Tensor sparse_pow(const Tensor& input, const Tensor& exponent);
Tensor sparse_sum(const Tensor& input, std::optional<ShapeRef> dim, bool keepdim,
                  std::optional<DType> dtype);
Tensor sparse_norm(const Tensor& input, std::optional<Scalar> p, std::optional<ShapeRef> dim,
                   bool keepdim, std::optional<DType> dtype);

// sparse_shape.cpp
Tensor sparse_transpose(const Tensor& input, int64_t dim0, int64_t dim1);
Tensor sparse_permute(const Tensor& input, ShapeRef dims);
Tensor sparse_unsqueeze(const Tensor& input, int64_t dim);
Tensor sparse_select(const Tensor& input, int64_t dim, int64_t index);
Tensor sparse_index_select(const Tensor& input, int64_t dim, const Tensor& index);
Tensor sparse_cat(TensorList tensors, int64_t dim);
Tensor sparse_stack(TensorList tensors, int64_t dim);
std::vector<Tensor> sparse_unbind(const Tensor& input, int64_t dim);
Tensor sparse_zeros_like(const Tensor& input, std::optional<DType> dtype,
                         std::optional<Device> device, std::optional<MemoryFormat>);
Tensor sparse_empty_like(const Tensor& input, std::optional<DType> dtype,
                         std::optional<Device> device, std::optional<MemoryFormat> format);
Tensor sparse_full_like(const Tensor& input, Scalar fill_value, std::optional<DType> dtype,
                        std::optional<Device> device, std::optional<MemoryFormat> format);
Tensor sparse_ones_like(const Tensor& input, std::optional<DType> dtype,
                        std::optional<Device> device, std::optional<MemoryFormat> format);
Tensor sparse_new_zeros(const Tensor& input, ShapeRef size, std::optional<DType> dtype,
                        std::optional<Device> device);
// The values of a compressed tensor, all that filling it sets; it refuses COO tensors.
Tensor entries_to_fill(const Tensor& sparse);

}  // namespace rushlight
