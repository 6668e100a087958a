// Defines the geometry of views; the ops are in shape_view.cpp, shape_part.cpp and their kin.
#include "core/ops/shape/shape.h"

#include "core/ops/ops.h"
#include "core/tensor/dims.h"

namespace rushlight {

Window window_of(const Tensor& tensor) {
  return {tensor.sizes(), tensor.strides(), tensor.offset()};
}

Window row_major(const Shape& sizes) { return {sizes, contiguous_strides(sizes), 0}; }

Tensor alias(const Tensor& tensor, const Window& window) {
  return alias(tensor, window.sizes, window.strides, window.offset);
}

Tensor window_backward(const Tensor& grad, const Shape& sizes, const Window& window) {
  return call<"_window_backward", Tensor>(grad, ShapeRef(sizes), ShapeRef(window.strides),
                                          window.offset);
}

Window select_window(Window window, int64_t dim, int64_t index) {
  int64_t ndim = int64_t(window.sizes.size());
  CHECK(ndim > 0, ErrorKind::kIndex,
        "select() cannot be applied to a 0-dim tensor. Use .item() to ", "get its value.");
  size_t d = size_t(wrap_dim(dim, ndim));
  int64_t size = window.sizes[d];
  CHECK(index >= -size && index < size, ErrorKind::kIndex, "index ", index,
        " is out of bounds for dimension ", d, " with size ", size);
  window.offset += (index < 0 ? index + size : index) * window.strides[d];
  window.sizes.erase(d);
  window.strides.erase(d);
  return window;
}

Window slice_window(Window window, int64_t dim, int64_t start, int64_t end, int64_t step) {
  int64_t ndim = int64_t(window.sizes.size());
  CHECK(ndim > 0, ErrorKind::kIndex, "slice() cannot be applied to a 0-dim tensor.");
  CHECK(step > 0, ErrorKind::kValue, "slice step must be positive, got ", step,
        ". Use .flip() to reverse a tensor.");
  size_t d = size_t(wrap_dim(dim, ndim));
  int64_t size = window.sizes[d];
  auto place = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  start = place(start);
  int64_t length = std::max<int64_t>(place(end) - start, 0);
  window.sizes[d] = length / step + (length % step != 0);
  window.offset += start * window.strides[d];
  // With one element at most the stride is never used, and a huge step must not overflow it.
  if (window.sizes[d] > 1) window.strides[d] *= step;
  return window;
}

Window narrow_window(Window window, int64_t dim, int64_t start, int64_t length) {
  int64_t ndim = int64_t(window.sizes.size());
  CHECK(ndim > 0, "narrow() cannot be applied to a 0-dim tensor.");
  size_t d = size_t(wrap_dim(dim, ndim));
  int64_t size = window.sizes[d];
  CHECK(length >= 0, "length must be non-negative, got ", length);
  CHECK(start >= -size && start <= size, ErrorKind::kIndex,
        "start out of range (expected to be in ", "range of [", -size, ", ", size, "], but got ",
        start, ")");
  if (start < 0) start += size;
  CHECK(length <= size - start, "start (", start, ") + length (", length,
        ") exceeds dimension size (", size, ").");
  window.offset += start * window.strides[d];
  window.sizes[d] = length;
  return window;
}

Window diagonal_window(Window window, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t ndim = int64_t(window.sizes.size());
  size_t row = size_t(wrap_dim(dim1, ndim)), column = size_t(wrap_dim(dim2, ndim));
  CHECK(row != column, "the dimensions cannot be identical ", dim1, ", ", dim2);
  int64_t rows = window.sizes[row], columns = window.sizes[column];
  int64_t skipped_rows = std::min(rows, offset < 0 ? -std::max(offset, -rows) : 0);
  int64_t skipped_columns = std::min(columns, std::max<int64_t>(offset, 0));
  int64_t length = std::min(rows - skipped_rows, columns - skipped_columns);
  if (length > 0)
    window.offset += skipped_rows * window.strides[row] + skipped_columns * window.strides[column];
  int64_t stride = window.strides[row] + window.strides[column];
  for (size_t d : {std::max(row, column), std::min(row, column)}) {
    window.sizes.erase(d);
    window.strides.erase(d);
  }
  window.sizes.push_back(length);
  window.strides.push_back(stride);
  return window;
}

Window unfold_window(Window window, int64_t dim, int64_t size, int64_t step) {
  int64_t ndim = int64_t(window.sizes.size());
  size_t d = size_t(wrap_dim(dim, ndim));
  int64_t length = ndim == 0 ? 1 : window.sizes[d];
  CHECK(size >= 0 && size <= length, "maximum size for tensor at dimension ", dim, " is ", length,
        " but size is ", size);
  CHECK(step > 0, "step is ", step, " but must be > 0");
  int64_t stride = ndim == 0 ? 1 : window.strides[d];
  if (ndim > 0) {
    window.sizes[d] = (length - size) / step + 1;
    if (window.sizes[d] > 1) window.strides[d] *= step;
  }
  window.sizes.push_back(size);
  window.strides.push_back(stride);
  return window;
}

Window unsqueeze_window(Window window, int64_t dim) {
  size_t d = size_t(wrap_dim(dim, int64_t(window.sizes.size()) + 1));
  int64_t stride = d < window.sizes.size() ? window.sizes[d] * window.strides[d] : 1;
  window.sizes.insert(d, 1);
  window.strides.insert(d, stride);
  return window;
}

Window permute_window(const Window& window, ShapeRef dims) {
  CHECK(dims.size() == window.sizes.size(), "number of dims in the permutation ", ShapeText{dims},
        " does not match the ", window.sizes.size(), " dims of shape ", window.sizes);
  Window out{window.sizes, window.strides, window.offset};
  Shape from = unique_dims(dims, int64_t(dims.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    out.sizes[i] = window.sizes[size_t(from[i])];
    out.strides[i] = window.strides[size_t(from[i])];
  }
  return out;
}

bool may_self_overlap(ShapeRef sizes, ShapeRef strides) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return false;
  Shape dims(sizes), steps(strides);
  Shape* lanes[] = {&steps};
  join_dims(dims, lanes);
  int64_t reach = 0;
  for (size_t d = dims.size(); d-- > 0; reach += (dims[d] - 1) * steps[d])
    if (steps[d] <= reach) return true;
  return false;
}

Shape infer_sizes(ShapeRef shape, int64_t numel) {
  Shape sizes(shape);
  int64_t known = 1;
  std::optional<size_t> inferred;
  bool fits = true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) {
      CHECK(!inferred, "only one dimension can be inferred, got ", ShapeText{shape});
      inferred = d;
      continue;
    }
    CHECK(sizes[d] >= 0, "invalid shape dimension ", sizes[d], " in ", ShapeText{shape});
    fits &= !__builtin_mul_overflow(known, sizes[d], &known);
  }
  if (inferred) {
    CHECK(known != 0 || numel != 0, "shape '", ShapeText{shape}, "' is invalid for input of size ",
          numel);
    CHECK(known != 0, "cannot reshape tensor of 0 elements into shape ", ShapeText{shape},
          " because the unspecified dimension size -1 can be any value and is ambiguous");
    fits &= numel % known == 0;
    sizes[*inferred] = numel / known;
  } else {
    fits = (fits && known == numel) || (numel == 0 && checked_numel(sizes) == 0);
  }
  CHECK(fits, "shape '", ShapeText{shape}, "' is invalid for input of size ", numel);
  return sizes;
}

std::optional<Shape> view_strides(ShapeRef from_sizes, ShapeRef from_strides, ShapeRef sizes) {
  if (same_shape(from_sizes, sizes)) return Shape(from_strides);
  // Dims that lie like one are joined into runs; new dims are then cut off the runs, last first.
  Shape run_sizes, run_strides;
  for (size_t d = 0; d < from_sizes.size(); ++d) {
    if (from_sizes[d] == 0) return contiguous_strides(sizes);
    if (from_sizes[d] == 1) continue;
    if (!run_sizes.empty() && run_strides.back() == from_sizes[d] * from_strides[d]) {
      run_sizes.back() *= from_sizes[d];
      run_strides.back() = from_strides[d];
    } else {
      run_sizes.push_back(from_sizes[d]);
      run_strides.push_back(from_strides[d]);
    }
  }
  Shape strides(sizes.size());
  int64_t left = 1;  // elements of the current run that no new dim has taken yet
  int64_t step = run_strides.empty() ? 1 : run_strides.back();
  for (size_t d = sizes.size(); d-- > 0;) {
    if (left == 1 && sizes[d] != 1) {
      left = run_sizes.back();
      step = run_strides.back();
      run_sizes.pop_back();
      run_strides.pop_back();
    }
    if (left % sizes[d] != 0) return std::nullopt;
    strides[d] = step;
    left /= sizes[d];
    step *= sizes[d];
  }
  return strides;
}

Shape unique_dims(ShapeRef dims, int64_t ndim) {
  Shape wrapped;
  for (int64_t dim : dims) {
    int64_t d = wrap_dim(dim, ndim);
    CHECK(std::find(wrapped.begin(), wrapped.end(), d) == wrapped.end(), "dim ", d,
          " appears multiple times in the list of dims ", ShapeText{dims});
    wrapped.push_back(d);
  }
  return wrapped;
}

void check_piece_count(int64_t count) {
  constexpr int64_t kMost = int64_t(1) << 28;  // each takes more than 200 bytes
  CHECK(count <= kMost, ErrorKind::kOutOfMemory, "no memory for ", count, " tensors");
}

Shape piece_lengths(int64_t size, int64_t length) {
  if (size == 0) return {0};
  check_piece_count(size / length);
  Shape lengths;
  for (int64_t left = size; left > 0; left -= lengths.back())
    lengths.push_back(std::min(length, left));
  return lengths;
}

}  // namespace rushlight
