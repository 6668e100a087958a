// Defines the shape arithmetic of shape.h.
#include "core/base/shape.h"

#include <algorithm>

namespace rushlight {

std::ostream& operator<<(std::ostream& out, ShapeText text) {
  out << "(";
  for (size_t i = 0; i < text.shape.size(); ++i) out << (i ? ", " : "") << text.shape[i];
  return out << (text.shape.size() == 1 ? ",)" : ")");
}

int64_t checked_numel(ShapeRef sizes) {
  CHECK(sizes.size() <= kMaxDims, "a tensor has at most ", kMaxDims, " dims, got ", sizes.size());
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int64_t size : sizes) {
    CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ",
          ShapeText{sizes});
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count);
  }
  // Of an empty tensor too, whose strides are products of its other sizes.
  CHECK(!overflow, "sizes ", ShapeText{sizes}, " overflow: a tensor has at most 2^63 - 1 elements");
  return empty ? 0 : count;
}

Shape contiguous_strides(ShapeRef sizes) {
  Shape strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

Shape broadcast_shapes(ShapeRef a, ShapeRef b) {
  size_t ndim = std::max(a.size(), b.size());
  Shape out(ndim);
  for (size_t i = 0; i < ndim; ++i) {
    int64_t x = i + a.size() < ndim ? 1 : a[i + a.size() - ndim];
    int64_t y = i + b.size() < ndim ? 1 : b[i + b.size() - ndim];
    CHECK(x == y || x == 1 || y == 1, "shapes ", ShapeText{a}, " and ", ShapeText{b},
          " do not broadcast: dim ", i, " is ", x, " in input and ", y,
          " in other; sizes must be equal or 1. The size of tensor a (", x,
          ") must match the size of tensor b (", y, ") at non-singleton dimension ", i);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

void check_expands(ShapeRef from, ShapeRef to) {
  bool fits = from.size() <= to.size();
  for (size_t i = 1; fits && i <= from.size(); ++i)
    fits = from[from.size() - i] == to[to.size() - i] || from[from.size() - i] == 1;
  CHECK(fits, "shape mismatch: a value of shape ", ShapeText{from},
        " cannot be broadcast to the shape ", ShapeText{to}, " that is written");
}

}  // namespace rushlight
