// Owns the order that dims have in memory: that of fresh results, which follow their operands, and
// what order a tensor's strides suggest. Where tensors go channels_last, results stay so.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// The strides of a dense result of these sizes, to which the operands broadcast. Of two dims the
// first operand that tells them apart has the inner one; along broadcast dims it tells nothing.
Shape strides_after(ShapeRef sizes, std::span<const Tensor* const> operands);
// Those of a copy: the strides of a dense tensor, without gaps where it has any.
Shape strides_after(const Tensor& tensor);
// Uninitialized, of the sizes, order and device of a tensor.
Tensor empty_after(const Tensor& tensor, DType dtype);
inline Tensor empty_after(const Tensor& tensor) { return empty_after(tensor, tensor.dtype()); }

// channels_last or channels_last_3d where the strides of images or volumes lie in that order, with
// gaps or without, else contiguous. What could be both is contiguous.
MemoryFormat suggested_format(const Tensor& tensor);
inline bool is_channels_last(const Tensor& tensor) {
  return suggested_format(tensor) != MemoryFormat::contiguous;
}
// The name that channels_last has for images (4 dims) and volumes (5); others have none.
inline MemoryFormat channels_last_for(int64_t ndim) {
  return ndim == 4 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d;
}
// A dense tensor with the same values: the tensor itself when it is in that order.
Tensor in_format(const Tensor& tensor, MemoryFormat format);

}  // namespace rushlight
