// Defines the checks on layouts and indices.
#include "core/ops/sparse/sparse_checks.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/ops/sparse/sparse_batch.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// A copy that nobody else can write.
Tensor private_indices(const Tensor& indices, const char* name, int64_t dim, const char* dims) {
  CHECK(is_integral(indices.dtype()), name, " must be an integer tensor, but got ",
        dtype_name(indices.dtype()), ".");
  CHECK(indices.dim() == dim, name, " must have ", dim, dim == 1 ? " dim, " : " dims, ", dims,
        ", but got shape ", indices.sizes(), ".");
  CHECK(indices.device().is_cpu(), ErrorKind::kNotImplemented,
        "sparse tensors are not implemented on ", indices.device(), ". Move ", name,
        " to the CPU with cpu().");
  return clone_dense(to_dtype(indices, DType::int64));
}

void check_count(const Tensor& values, int64_t count, int64_t dim) {
  CHECK(values.dim() > dim && values.size(dim) == count,
        "indices and values must have same nnz, but got nnz from indices: ", count,
        ", values of shape ", values.sizes());
}

// The sizes of a compressed tensor that its parts tell: those of a batch, of a block and of dense
// dims.
struct PartSizes {
  Shape batch, block, dense;
};
PartSizes checked_part_sizes(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                             Layout layout) {
  int64_t batch_dims = compressed.dim() - 1, block_dims = has_blocks(layout) ? 2 : 0;
  CHECK(values.dim() > batch_dims + block_dims, "values must have ", batch_dims + 1 + block_dims,
        " dims or more, (batch..., entries", block_dims ? ", rows, columns of a block" : "",
        ", dense dims...), but got shape ", values.sizes(), ".");
  ShapeRef batch = ShapeRef(compressed.sizes()).first(size_t(batch_dims));
  for (const Tensor* part : {&plain, &values})
    CHECK(same_shape(batch, ShapeRef(part->sizes()).first(size_t(batch_dims))),
          "the parts have different batch dims: compressed indices are of shape ",
          compressed.sizes(), ", plain indices ", plain.sizes(), " and values ", values.sizes(),
          ". The first ", batch_dims, " dims must be equal.");
  check_count(values, plain.size(-1), batch_dims);
  auto block = values.sizes().begin() + batch_dims + 1, dense = block + block_dims;
  PartSizes sizes{batch, Shape(block, dense), Shape(dense, values.sizes().end())};
  CHECK(sizes.block.empty() || (sizes.block[0] > 0 && sizes.block[1] > 0),
        "blocks must have rows and columns, but values have shape ", values.sizes(), ".");
  return sizes;
}

// The sizes of the matrices in blocks, where `size` is that of the whole tensor.
Shape checked_matrix_sizes(ShapeRef size, const PartSizes& parts) {
  size_t batch_dims = parts.batch.size(), dense_dims = parts.dense.size();
  CHECK(size.size() == batch_dims + 2 + dense_dims, "size must have ", batch_dims + 2 + dense_dims,
        " dims, but got ", ShapeText{size}, ". It is that of the batch, of a matrix, and of ",
        dense_dims, " dense dims.");
  checked_numel(size);
  CHECK(same_shape(size.first(batch_dims), parts.batch) &&
            same_shape(size.last(dense_dims), parts.dense),
        "size ", ShapeText{size}, " does not fit parts with batch dims ", parts.batch,
        " and dense dims ", parts.dense, ". It must begin and end with them.");
  Shape sizes(size.subspan(batch_dims, 2));
  for (size_t d = 0; d < parts.block.size(); ++d) {
    CHECK(sizes[d] % parts.block[d] == 0, "size ", ShapeText{size}, " must be divisible by the ",
          "sizes of a block, ", parts.block, ".");
    sizes[d] /= parts.block[d];
  }
  return sizes;
}

void check_order(const int64_t* indices, int64_t dims, int64_t count) {
  for (int64_t k = 1; k < count; ++k) {
    int64_t d = 0;
    while (d < dims && indices[d * count + k - 1] == indices[d * count + k]) ++d;
    CHECK(d < dims && indices[d * count + k - 1] < indices[d * count + k],
          "is_coalesced=True, but entry ", k, " does not come after entry ", k - 1,
          " in row-major order. Leave is_coalesced out and call coalesce().");
  }
}

}  // namespace

const Tensor& expect_sparse(const Tensor& input) {
  CHECK(input.is_sparse(),
        "expected a sparse tensor, but got one of layout strided. Use "
        "to_sparse() first.");
  return input;
}
const SparsePattern& expect_coo(const Tensor& input) {
  CHECK(layout_of(input) == Layout::sparse_coo, "expected a tensor of layout sparse_coo, but got ",
        layout_name(layout_of(input)), ". Use to_sparse_coo() first.");
  return *pattern_of(input);
}

CooParts checked_coo(const Tensor& indices, const Tensor& values, std::optional<ShapeRef> size,
                     bool in_order) {
  CooParts parts{private_indices(indices, "indices", 2, "sparse_dim x nnz"), {}};
  int64_t dims = indices.size(0), count = indices.size(1);
  check_count(values, count, 0);
  int64_t dense_dims = values.dim() - 1;
  const int64_t* index = parts.indices.data<int64_t>();
  if (size) {
    CHECK(int64_t(size->size()) == dims + dense_dims, "number of dimensions must be sparse_dim (",
          dims, ") + dense_dim (", dense_dims, "), but got ", size->size());
    for (int64_t d = 0; d < dense_dims; ++d)
      CHECK((*size)[size_t(dims + d)] == values.size(d + 1), "values has incorrect size ",
            values.sizes(), ": dim ", d + 1, " must be ", (*size)[size_t(dims + d)], ", as dim ",
            dims + d, " of size ", ShapeText{*size});
  }
  CHECK(dims + dense_dims <= kMaxDims, "a tensor has at most ", kMaxDims, " dims, but this has ",
        dims + dense_dims);
  for (int64_t d = 0; d < dims; ++d, index += count) {
    int64_t greatest = count ? *std::max_element(index, index + count) : -1;
    CHECK(size || greatest < INT64_MAX, "found index ", greatest, " for dim ", d,
          ", which no size can hold.");
    parts.sparse_sizes.push_back(size ? (*size)[size_t(d)] : greatest + 1);
    int64_t bound = parts.sparse_sizes.back();
    for (int64_t k = 0; k < count; ++k) {
      CHECK(index[k] >= 0, "found negative index ", index[k], " for dim ", d, " at entry ", k,
            ". Indices count from 0.");
      CHECK(index[k] < bound, "size is inconsistent with indices: for dim ", d, ", size is ", bound,
            " but found index ", index[k], " at entry ", k, ". Valid indices are 0 to ", bound - 1,
            ".");
    }
  }
  if (in_order) check_order(parts.indices.data<int64_t>(), dims, count);
  return parts;
}

CompressedParts checked_compressed(const Tensor& compressed, const Tensor& plain,
                                   const Tensor& values, std::optional<ShapeRef> size,
                                   Layout layout) {
  bool columns = is_by_columns(layout);
  const char* start_name = columns ? "ccol_indices" : "crow_indices";
  const char* other_name = columns ? "row_indices" : "col_indices";
  const char* line = columns ? "column" : "row";
  CHECK(compressed.dim() > 0, start_name, " must have a dim or more, (batch..., ", line,
        "s + 1), but got shape ().");
  Tensor starts = private_indices(compressed, start_name, compressed.dim(), "");
  Tensor others =
      private_indices(plain, other_name, compressed.dim(), "as many as the compressed indices");
  PartSizes sizes = checked_part_sizes(starts, others, values, layout);
  int64_t lines = starts.size(-1) - 1, count = others.size(-1), total = others.numel();
  CHECK(lines >= 0, start_name, " must have an element more than a matrix has ", line,
        "s, but is empty.");
  const int64_t* other = others.data<int64_t>();
  int64_t width = 0;
  if (!size && total) {
    int64_t greatest = *std::max_element(other, other + total);
    CHECK(greatest < INT64_MAX, "found index ", greatest, " in ", other_name,
          ", which no size can hold.");
    width = std::max<int64_t>(greatest + 1, 0);
  }
  if (size) {
    Shape matrix = checked_matrix_sizes(*size, sizes);
    width = matrix[!columns];
    CHECK(matrix[columns] == lines, start_name, " has ", lines + 1, " elements, but for size ",
          ShapeText{*size}, " it must have ", matrix[columns] + 1, ".");
  }
  CompressedParts parts{{}, sizes.batch, sizes.block, true};
  parts.sizes.push_back(columns ? width : lines);
  parts.sizes.push_back(columns ? lines : width);
  checked_numel(parts.sizes);
  int64_t matrices = checked_numel(sizes.batch);
  const int64_t* start = starts.data<int64_t>();
  for (int64_t m = 0; m < matrices; ++m, start += lines + 1, other += count) {
    auto of_matrix = [&] {
      return sizes.batch.empty() ? std::string() : " of matrix " + std::to_string(m);
    };
    CHECK(start[0] == 0, start_name, "[..., 0] must be 0, but is ", start[0], of_matrix(), ".");
    CHECK(start[lines] == count, start_name, "[..., -1] must be the number of entries, ", count,
          ", but is ", start[lines], of_matrix(), ".");
    for (int64_t i = 0; i < lines; ++i) {
      CHECK(start[i] <= start[i + 1] && start[i + 1] <= count, start_name,
            " must not decrease, but ", line, " ", i, of_matrix(), " goes from entry ", start[i],
            " to ", start[i + 1], ".");
      for (int64_t k = start[i]; k < start[i + 1]; ++k) {
        CHECK(other[k] >= 0 && other[k] < width, "`0 <= ", other_name, " < ", width,
              "` is not satisfied: found index ", other[k], " at entry ", k, " of ", line, " ", i,
              of_matrix(), ".");
        parts.in_order &= k == start[i] || other[k - 1] < other[k];
      }
    }
  }
  parts.lines = joined_lines(starts, others, width);
  return parts;
}

Tensor empty_coo(ShapeRef sizes, int64_t sparse_dim, DType dtype) {
  Shape values{0};
  for (int64_t size : sizes.subspan(size_t(sparse_dim))) values.push_back(size);
  checked_numel(sizes);
  auto pattern = SparsePattern::coo(empty(Shape{sparse_dim, 0}, DType::int64),
                                    sizes.first(size_t(sparse_dim)), true);
  return make_sparse(pattern, empty(values, dtype));
}

}  // namespace rushlight
