#include "core/tensor/deferred_op.h"

#include <cstring>

namespace rushlight {

DeferredOp::DeferredOp(const DeferredCall& call, ShapeRef sizes, ShapeRef strides,
                       std::span<const TileOperand> reads, const void* numbers)
    : call(call), sizes(sizes), strides(strides), operand_count(int(reads.size())) {
  for (size_t k = 0; k < reads.size(); ++k) {
    tensors_[k] = shallow_copy(*reads[k].tensor);
    operands[k] = {&tensors_[k], reads[k].kernel_dtype};
  }
  if (int count = call.scalar_count())
    std::memcpy(scalars, numbers, size_t(count) * dtype_size(call.compute));
}

DeferredOp& body_of(DeferredOp& op) {
  DeferredOp* read = op.call.reduction ? op.operands[0].tensor->storage()->deferred() : nullptr;
  return read ? *read : op;
}

bool is_same(const TileOperand& one, const TileOperand& other) {
  const Tensor &a = *one.tensor, &b = *other.tensor;
  return one.kernel_dtype == other.kernel_dtype && a.dtype() == b.dtype() &&
         a.storage() == b.storage() && a.offset() == b.offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

bool is_number(const TileOperand& operand) {
  return operand.tensor->numel() == 1 && operand.tensor->device().is_cpu() &&
         !operand.tensor->storage()->deferred();
}

}  // namespace rushlight
