// Owns sparse tensors: a pattern, where the entries are, and a dense tensor of their values.
//
// Note [Sparse tensors]
// The TensorImpl of a sparse tensor has sizes and a dtype like any other, but its storage has no
// memory: data() and alias() refuse, so that an op which knows nothing of sparse tensors raises.
// Which ops know says the field .sparse in their OP block, see op.h.
// A pattern never changes and is shared by all tensors with entries in the same places; writing in
// place gives a tensor other parts. Its indices are private, read-only copies, checked when they
// came in: kernels trust them.
// A matrix of blocks is a CSR or CSC matrix whose entries are blocks: its pattern counts in blocks,
// its values are (entries, rows, columns of a block). Dense tensors meet it as a view of their
// blocks, in_blocks() of ops/sparse/sparse.h, with which it is like any tensor with dense dims.
// A batch of compressed matrices has a pattern whose first dims are those of the batch, and all its
// entries in a row. It is ordered by rows and columns as the block-diagonal matrix of them all, so
// that products and the ways between layouts see one matrix. Its parts by matrix, as Python sees
// them, are those of ops/sparse/sparse_batch.h.
// The values have no history. Ops take the values out of a sparse tensor and put others into its
// pattern by two recorded ops (ops/sparse/sparse.cpp), and all between is ops on dense tensors:
// these two alone know how gradients enter and leave sparse tensors.
#pragma once

#include <memory>
#include <mutex>

#include "core/tensor/tensor.h"

namespace rushlight {

enum class Layout : uint8_t { strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc };
inline constexpr int kLayouts = 6;
const char* layout_name(Layout layout);
constexpr bool has_blocks(Layout layout) { return layout >= Layout::sparse_bsr; }
constexpr bool is_by_columns(Layout layout) {
  return layout == Layout::sparse_csc || layout == Layout::sparse_bsc;
}

// The entries of a matrix by row, or by column: those of line i are start[i] to start[i + 1] - 1,
// `other` is the column (or row) of each, `entry` where its value stands; undefined when the
// values are in this order. Of a batch, those of the block-diagonal matrix.
struct EntryOrder {
  Tensor start, other, entry;

  const int64_t* entries() const { return entry.defined() ? entry.data<int64_t>() : nullptr; }
};

class SparsePattern final : public RefCounted {
 public:
  using Ptr = IntrusivePtr<SparsePattern>;

  // `indices` is (sparse dims, entries), `sizes` those of the sparse dims. The caller has checked
  // them; `coalesced` tells that they are in row-major order and that none comes twice.
  static Ptr coo(Tensor indices, ShapeRef sizes, bool coalesced);
  // A matrix, or a batch with as many entries in each, whose `lines`, in the order of its values,
  // are its rows (csr, bsr) or columns (csc, bsc), counted like `sizes`, (batch..., rows, columns),
  // in blocks, where `block` has the rows and columns of one.
  static Ptr compressed(Layout layout, EntryOrder lines, ShapeRef sizes, bool coalesced,
                        ShapeRef block = {});
  // The pattern of the transposed matrix; orders that are known for one serve for both.
  static Ptr transposed(const Ptr& matrix);
  static void destroy(SparsePattern* pattern) { delete pattern; }

  Layout layout() const { return layout_; }
  bool is_coo() const { return layout_ == Layout::sparse_coo; }
  const Shape& sizes() const { return sizes_; }
  // The sizes of a block; none in the layouts without blocks.
  const Shape& block() const { return block_; }
  int64_t sparse_dim() const { return int64_t(sizes_.size()); }
  // How many of the sparse dims are those of a batch; a COO tensor has none.
  int64_t batch_dims() const { return is_coo() ? 0 : sparse_dim() - 2; }
  int64_t count() const { return count_; }
  // How many rows (dim 0) or columns (dim 1) there are, in all matrices along the dims before.
  int64_t line_count(int64_t dim) const;
  bool coalesced() const { return coalesced_; }

  // The indices of the entries in the order of the values, for any layout.
  const Tensor& indices() const;
  // The entries of a matrix, or of all along the dims before the last two, by dim 0 (rows) or 1
  // (columns).
  const EntryOrder& by(int64_t dim) const;

 private:
  SparsePattern(Layout layout, ShapeRef sizes, int64_t count, bool coalesced)
      : layout_(layout), coalesced_(coalesced), sizes_(sizes), count_(count) {}

  Layout layout_;
  bool coalesced_;
  Shape sizes_, block_;
  int64_t count_;
  Ptr turned_from_;  // the orders of a transposed pattern are found there
  // What is made when it is first asked for.
  mutable std::mutex mutex_;
  mutable Tensor indices_;
  mutable std::unique_ptr<const EntryOrder> order_[2];
};

class SparseParts final : public RefCounted {
 public:
  SparseParts(SparsePattern::Ptr pattern_in, Tensor values_in)
      : pattern(std::move(pattern_in)), values(std::move(values_in)) {}
  static void destroy(SparseParts* parts) { delete parts; }

  const SparsePattern::Ptr pattern;
  const Tensor values;  // (entries, rows and columns of a block if there are, dense dims...)
};

inline Layout layout_of(const Tensor& tensor) {
  return tensor.is_sparse() ? tensor.impl()->sparse->pattern->layout() : Layout::strided;
}
inline const SparsePattern::Ptr& pattern_of(const Tensor& sparse) {
  return sparse.impl()->sparse->pattern;
}
// Without history; another handle on the memory that the sparse tensor uses.
inline Tensor plain_values_of(const Tensor& sparse) {
  return shallow_copy(sparse.impl()->sparse->values);
}

// A sparse tensor without history of these values, one for each entry.
Tensor make_sparse(const SparsePattern::Ptr& pattern, const Tensor& values);
// The pattern of a sparse tensor as one of zeros: what gradients keep. It holds no values in memory
// and stays as it is when the tensor is written in place.
Tensor bare_pattern(const Tensor& sparse);
// Gives a sparse tensor the parts and sizes of another one.
void take_parts(const Tensor& to, const Tensor& from);

[[noreturn]] void refuse_sparse(const Tensor& sparse);

// Where each entry stands in row-major order of the sparse dims.
Tensor places_of(const SparsePattern& pattern);
// The entries in the row-major order of their places, equal ones in the order they came.
Tensor sorted_entries(const SparsePattern& pattern);

}  // namespace rushlight
