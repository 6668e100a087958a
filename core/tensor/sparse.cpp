// Defines how sparse tensors are made, and the orders of the entries of a pattern.
#include "core/tensor/sparse.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace rushlight {
namespace {

Tensor frozen(Tensor indices) {
  indices.storage()->freeze();
  return indices;
}

// How many of the keys, all from 0 to size - 1, are below 0, 1, ..., size.
Tensor starts_of(const int64_t* keys, int64_t count, int64_t size) {
  Tensor start = empty(Shape{size + 1}, DType::int64);
  int64_t* s = start.data<int64_t>();
  std::fill_n(s, size + 1, 0);
  for (int64_t k = 0; k < count; ++k) ++s[keys[k] + 1];
  std::partial_sum(s, s + size + 1, s);
  return start;
}

// Sorts entries by key, keeping their order where keys are equal.
void sort_by(const int64_t* keys, int64_t size, const int64_t* from, int64_t* to, int64_t count) {
  Tensor next = starts_of(keys, count, size);
  int64_t* n = next.data<int64_t>();
  for (int64_t k = 0; k < count; ++k) to[n[keys[from[k]]]++] = from[k];
}

EntryOrder sorted_order(const int64_t* keys, int64_t size, const int64_t* other, int64_t count) {
  EntryOrder order{starts_of(keys, count, size), empty(Shape{count}, DType::int64),
                   empty(Shape{count}, DType::int64)};
  int64_t* entry = order.entry.data<int64_t>();
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  sort_by(keys, size, all.data(), entry, count);
  int64_t* others = order.other.data<int64_t>();
  for (int64_t k = 0; k < count; ++k) others[k] = other[entry[k]];
  return order;
}

// Fills to[start[i]] to to[start[i + 1] - 1] with i.
void write_lines(const EntryOrder& lines, int64_t* to) {
  const int64_t* start = lines.start.data<int64_t>();
  for (int64_t i = 0; i + 1 < lines.start.numel(); ++i)
    std::fill(to + start[i], to + start[i + 1], i);
}

// Where each entry stands in row-major order of all dims but one.
Tensor places_without(const Tensor& indices, ShapeRef sizes, int64_t without) {
  int64_t count = indices.size(1);
  Tensor places = empty(Shape{count}, DType::int64);
  int64_t* p = places.data<int64_t>();
  std::fill_n(p, count, 0);
  const int64_t* index = indices.data<int64_t>();
  for (int64_t d = 0; d < int64_t(sizes.size()); ++d, index += count)
    for (int64_t k = 0; k < count && d != without; ++k) p[k] = p[k] * sizes[size_t(d)] + index[k];
  return places;
}

// The row (dim 0) or column (dim 1) of each entry in the block-diagonal matrix of all matrices.
Tensor diagonal_lines(const Tensor& indices, ShapeRef sizes, int64_t dim) {
  int64_t count = indices.size(1), batch_dims = int64_t(sizes.size()) - 2;
  if (batch_dims == 0) return alias(indices, Shape{count}, Shape{1}, dim * count);
  return places_without(indices, sizes, batch_dims + 1 - dim);
}

// From rows and columns of the block-diagonal matrix, the last two rows of `indices`, to all
// indices.
void separate_matrices(int64_t* indices, int64_t count, ShapeRef sizes) {
  size_t batch_dims = sizes.size() - 2;
  int64_t *row = indices + int64_t(batch_dims) * count, *column = row + count;
  for (int64_t k = 0; k < count; ++k) {
    int64_t matrix = row[k] / sizes[batch_dims];
    row[k] %= sizes[batch_dims];
    column[k] %= sizes[batch_dims + 1];
    for (size_t d = batch_dims; d-- > 0; matrix /= sizes[d])
      indices[int64_t(d) * count + k] = matrix % sizes[d];
  }
}

}  // namespace

const char* layout_name(Layout layout) {
  constexpr const char* names[] = {"strided",    "sparse_coo", "sparse_csr",
                                   "sparse_csc", "sparse_bsr", "sparse_bsc"};
  return names[int(layout)];
}

void refuse_sparse(const Tensor& sparse) {
  detail::fail(ErrorKind::kNotImplemented, "not implemented for tensors of layout ",
               layout_name(layout_of(sparse)), ". Use to_dense(), or work on values().");
}

SparsePattern::Ptr SparsePattern::coo(Tensor indices, ShapeRef sizes, bool coalesced) {
  int64_t count = indices.size(1);
  Ptr pattern = Ptr::adopt(new SparsePattern(Layout::sparse_coo, sizes, count, coalesced));
  pattern->indices_ = frozen(std::move(indices));
  return pattern;
}

SparsePattern::Ptr SparsePattern::compressed(Layout layout, EntryOrder lines, ShapeRef sizes,
                                             bool coalesced, ShapeRef block) {
  int64_t count = lines.other.numel();
  Ptr pattern = Ptr::adopt(new SparsePattern(layout, sizes, count, coalesced));
  frozen(lines.start);
  frozen(lines.other);
  pattern->block_ = block;
  pattern->order_[is_by_columns(layout)] = std::make_unique<EntryOrder>(std::move(lines));
  return pattern;
}

SparsePattern::Ptr SparsePattern::transposed(const Ptr& matrix) {
  constexpr Layout turned[] = {Layout::strided,    Layout::sparse_coo, Layout::sparse_csc,
                               Layout::sparse_csr, Layout::sparse_bsc, Layout::sparse_bsr};
  Layout layout = turned[int(matrix->layout_)];
  bool coalesced = matrix->coalesced_ && (layout != Layout::sparse_coo || matrix->count_ < 2);
  Shape sizes = matrix->sizes_;
  std::swap(sizes.back(), sizes[sizes.size() - 2]);
  Ptr pattern = Ptr::adopt(new SparsePattern(layout, sizes, matrix->count_, coalesced));
  pattern->block_ = matrix->block_;
  std::reverse(pattern->block_.begin(), pattern->block_.end());
  pattern->turned_from_ = matrix;
  return pattern;
}

int64_t SparsePattern::line_count(int64_t dim) const {
  size_t batch_dims = sizes_.size() - 2;
  return checked_numel(ShapeRef(sizes_).first(batch_dims)) * sizes_[batch_dims + size_t(dim)];
}

const Tensor& SparsePattern::indices() const {
  // The orders first: they have the lock of their own pattern.
  const EntryOrder* lines = is_coo() ? nullptr : &by(is_by_columns(layout_));
  const Tensor* turned = is_coo() && turned_from_ ? &turned_from_->indices() : nullptr;
  std::lock_guard lock(mutex_);
  if (indices_.defined()) return indices_;
  Tensor made = empty(Shape{sparse_dim(), count_}, DType::int64);
  int64_t* to = made.data<int64_t>();
  if (turned) {
    const int64_t* from = turned->data<int64_t>();
    std::copy(from, from + count_, to + count_);
    std::copy(from + count_, from + 2 * count_, to);
  } else {
    bool columns = is_by_columns(layout_);
    int64_t* rows = to + batch_dims() * count_;
    write_lines(*lines, rows + columns * count_);
    const int64_t* other = lines->other.data<int64_t>();
    std::copy(other, other + count_, rows + !columns * count_);
    if (batch_dims() > 0) separate_matrices(to, count_, sizes_);
  }
  indices_ = frozen(made);
  return indices_;
}

const EntryOrder& SparsePattern::by(int64_t dim) const {
  if (turned_from_) return turned_from_->by(1 - dim);
  std::lock_guard lock(mutex_);
  std::unique_ptr<const EntryOrder>& order = order_[dim];
  if (order) return *order;
  if (!is_coo()) {
    const EntryOrder& lines = *order_[1 - dim];
    std::vector<int64_t> line(static_cast<size_t>(count_));
    write_lines(lines, line.data());
    order = std::make_unique<EntryOrder>(
        sorted_order(lines.other.data<int64_t>(), line_count(dim), line.data(), count_));
    return *order;
  }
  Tensor line = diagonal_lines(indices_, sizes_, dim);
  Tensor other = diagonal_lines(indices_, sizes_, 1 - dim);
  const int64_t* keys = line.data<int64_t>();
  int64_t size = line_count(dim);
  order = std::make_unique<EntryOrder>(
      dim == 0 && coalesced_ ? EntryOrder{starts_of(keys, count_, size), other, Tensor()}
                             : sorted_order(keys, size, other.data<int64_t>(), count_));
  return *order;
}

Tensor make_sparse(const SparsePattern::Ptr& pattern, const Tensor& values) {
  ASSERT(values.dim() > 0 && values.size(0) == pattern->count());
  CHECK(values.device().is_cpu(), ErrorKind::kNotImplemented,
        "sparse tensors are not implemented on ", values.device(),
        ". Move the values to the CPU with cpu().");
  Shape sizes = pattern->sizes();
  const Shape& block = pattern->block();
  for (size_t b = 0; b < block.size(); ++b) {
    ASSERT(values.size(int64_t(b) + 1) == block[b]);
    size_t d = pattern->sizes().size() - 2 + b;
    int64_t blocks = sizes[d];
    CHECK(!__builtin_mul_overflow(blocks, block[b], &sizes[d]), "the size of dim ", d,
          " overflows: it is that of ", blocks, " blocks of ", block[b], ".");
  }
  for (size_t d = block.size() + 1; d < values.sizes().size(); ++d)
    sizes.push_back(values.sizes()[d]);
  int64_t numel = checked_numel(sizes), bytes;
  CHECK(!__builtin_mul_overflow(numel, int64_t(values.itemsize()), &bytes), "sizes ", sizes, " of ",
        dtype_name(values.dtype()), " overflow: a tensor has at most 2^63 - 1 bytes");
  Tensor sparse = empty(Shape{0}, values.dtype());
  TensorImpl& impl = *sparse.impl();
  impl.storage = StorageImpl::none(values.device());
  impl.sizes = sizes;
  impl.strides = contiguous_strides(sizes);
  impl.layout_changed();
  impl.sparse = IntrusivePtr<SparseParts>::adopt(new SparseParts(pattern, shallow_copy(values)));
  impl.parts_changed();
  return sparse;
}

Tensor bare_pattern(const Tensor& sparse) {
  const Tensor& values = sparse.impl()->sparse->values;
  Tensor zero = empty(Shape{1}, values.dtype());
  std::memset(zero.data(), 0, zero.itemsize());
  Shape strides(values.sizes().size(), 0);
  if (values.numel() == 0) return make_sparse(pattern_of(sparse), values);
  return make_sparse(pattern_of(sparse), alias(zero, values.sizes(), strides, 0));
}

void take_parts(const Tensor& to, const Tensor& from) {
  TensorImpl& impl = *to.impl();
  impl.sparse = from.impl()->sparse;
  impl.parts_changed();
  impl.sizes = from.sizes();
  impl.strides = from.strides();
  impl.dtype = from.dtype();
  impl.layout_changed();
}

Tensor places_of(const SparsePattern& pattern) {
  return places_without(pattern.indices(), pattern.sizes(), -1);
}

Tensor sorted_entries(const SparsePattern& pattern) {
  int64_t count = pattern.count();
  Tensor entries = empty(Shape{count}, DType::int64);
  int64_t* to = entries.data<int64_t>();
  std::iota(to, to + count, 0);
  if (pattern.coalesced() && !is_by_columns(pattern.layout())) return entries;
  // Sorting by the last dim, then by the one before it and so on takes time in proportion to the
  // sizes of the dims.
  int64_t most = 4 * count + 1024;
  const Shape& sizes = pattern.sizes();
  if (std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size <= most; })) {
    std::vector<int64_t> from(static_cast<size_t>(count));
    const int64_t* indices = pattern.indices().data<int64_t>();
    for (int64_t d = pattern.sparse_dim(); d-- > 0;) {
      std::copy_n(to, count, from.data());
      sort_by(indices + d * count, sizes[size_t(d)], from.data(), to, count);
    }
  } else {
    Tensor places = places_of(pattern);
    const int64_t* place = places.data<int64_t>();
    std::stable_sort(to, to + count, [&](int64_t a, int64_t b) { return place[a] < place[b]; });
  }
  return entries;
}

}  // namespace rushlight
