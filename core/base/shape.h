// Owns Shape (sizes or strides of a tensor) and the arithmetic on it that must not overflow.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>

#include "core/base/error.h"
#include "core/base/small_vector.h"

namespace rushlight {

// Five dims cover images and video in batches; more spill to the heap.
using Shape = SmallVector<int64_t, 5>;
using ShapeRef = std::span<const int64_t>;

inline constexpr int kMaxDims = 64;

// Prints (2, 3), (4,) and () as Python does.
struct ShapeText {
  ShapeRef shape;
};
std::ostream& operator<<(std::ostream& out, ShapeText text);
inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << ShapeText{shape};
}

// The number of elements. Raises when a size is negative or the product overflows 63 bits; sizes of
// 0 do not make the others small.
int64_t checked_numel(ShapeRef sizes);

// The strides of a row-major tensor of these sizes, which checked_numel has accepted.
Shape contiguous_strides(ShapeRef sizes);

// Maps a dim in [-ndim, ndim) to [0, ndim); a 0-d tensor accepts -1 and 0.
inline int64_t wrap_dim(int64_t dim, int64_t ndim) {
  int64_t range = ndim == 0 ? 1 : ndim;
  CHECK(dim >= -range && dim < range, ErrorKind::kIndex,
        "Dimension out of range (expected to be in range of [", -range, ", ", range - 1,
        "], but got ", dim, ")");
  return dim < 0 ? dim + range : dim;
}

// The broadcast of two shapes; the message names them input and other.
Shape broadcast_shapes(ShapeRef a, ShapeRef b);

// Raises unless a tensor of shape `from` can be written to one of shape `to`, repeating dims of
// size 1 and leading dims.
void check_expands(ShapeRef from, ShapeRef to);

inline bool same_shape(ShapeRef a, ShapeRef b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace rushlight
