// Owns the geometry of views: where the elements of a view lie in the layout of its input.
//
// A view op computes the window on its input's layout. Its gradient computes the same window on a
// row-major layout of the input's shape and puts the gradient there, so each rule is written once.
#pragma once

#include <optional>

#include "core/base/shape.h"
#include "core/tensor/tensor.h"

namespace rushlight {

struct Window {
  Shape sizes, strides;
  int64_t offset = 0;
};

Window window_of(const Tensor& tensor);
// The layout of a fresh row-major tensor.
Window row_major(const Shape& sizes);
Tensor alias(const Tensor& tensor, const Window& window);
// The gradient of a tensor of shape `sizes` of which `window` was viewed: `grad` there, 0
// elsewhere.
// The window lies in a row-major layout.
Tensor window_backward(const Tensor& grad, const Shape& sizes, const Window& window);

Window select_window(Window window, int64_t dim, int64_t index);
// Elements start, start + step, ... below end; start and end may be negative or too large.
Window slice_window(Window window, int64_t dim, int64_t start, int64_t end, int64_t step);
Window narrow_window(Window window, int64_t dim, int64_t start, int64_t length);
Window diagonal_window(Window window, int64_t offset, int64_t dim1, int64_t dim2);
// Slices of `size` elements, `step` apart, as a new last dim.
Window unfold_window(Window window, int64_t dim, int64_t size, int64_t step);
Window unsqueeze_window(Window window, int64_t dim);
Window permute_window(const Window& window, ShapeRef dims);

// Whether two positions of a layout may be the same element; false means that they never are.
bool may_self_overlap(ShapeRef sizes, ShapeRef strides);
// Replaces a -1 in `shape` by what `numel` elements leave for it.
Shape infer_sizes(ShapeRef shape, int64_t numel);
// The strides under which the elements of a layout read as `sizes`, when there are such.
std::optional<Shape> view_strides(ShapeRef from_sizes, ShapeRef from_strides, ShapeRef sizes);
// Wraps negative dims and refuses repeated ones.
Shape unique_dims(ShapeRef dims, int64_t ndim);
// The lengths of the pieces of `size` elements cut every `length`; the last may be shorter. Nothing
// is one
// piece of nothing.
Shape piece_lengths(int64_t size, int64_t length);
// Refuses to cut a tensor into more pieces than memory could hold.
void check_piece_count(int64_t count);

}  // namespace rushlight
