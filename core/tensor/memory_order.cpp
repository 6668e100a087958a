// Defines the memory order of results.
#include "core/tensor/memory_order.h"

#include <algorithm>

#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// Whether dim a lies inside dim b (-1), around it (1), or no operand can tell (0).
int compare_dims(int64_t a, int64_t b, ShapeRef sizes, std::span<const Tensor* const> operands) {
  for (const Tensor* operand : operands) {
    int64_t lead = int64_t(sizes.size()) - operand->dim();
    auto stride = [&](int64_t d) {
      bool broadcast = d < lead || operand->sizes()[size_t(d - lead)] != sizes[size_t(d)];
      return broadcast ? 0 : operand->strides()[size_t(d - lead)];
    };
    int64_t in_a = stride(a), in_b = stride(b);
    if (in_a == 0 || in_b == 0) continue;
    if (in_a != in_b) return in_a < in_b ? -1 : 1;
    if (sizes[size_t(a)] > sizes[size_t(b)]) return 1;
  }
  return 0;
}

}  // namespace

Shape strides_after(ShapeRef sizes, std::span<const Tensor* const> operands) {
  // The usual cases, without sorting: the first operand with all dims decides.
  const Tensor* first = nullptr;
  for (const Tensor* operand : operands) {
    if (operand->dim() == 0) continue;
    if (same_shape(operand->sizes(), sizes)) first = operand;
    break;
  }
  if (first && first->is_dense()) return first->strides();
  checked_numel(sizes);  // so that no product of them overflows

  Shape order(sizes.size());  // from the inside
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(order.size() - 1 - i);
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t at = i, before = i; before-- > 0;) {
      int found = compare_dims(order[before], order[at], sizes, operands);
      if (found < 0) break;
      if (found == 0) continue;
      std::swap(order[before], order[at]);
      at = before;
    }
  Shape strides(sizes.size());
  int64_t stride = 1;
  for (int64_t d : order) {
    strides[size_t(d)] = stride;
    stride *= std::max<int64_t>(sizes[size_t(d)], 1);
  }
  return strides;
}

Shape strides_after(const Tensor& tensor) {
  const Tensor* operands[] = {&tensor};
  return strides_after(tensor.sizes(), operands);
}

Tensor empty_after(const Tensor& tensor, DType dtype) {
  return empty_strided(tensor.sizes(), strides_after(tensor), dtype, tensor.device());
}

MemoryFormat suggested_format(const Tensor& tensor) {
  size_t ndim = tensor.sizes().size();
  if ((ndim != 4 && ndim != 5) || tensor.is_hollow() || tensor.strides()[1] == 0)
    return MemoryFormat::contiguous;
  // Each dim begins where the ones inside it end: channels, pixels from the right, samples.
  int64_t extent = 0;
  for (size_t i = 0; i < ndim; ++i) {
    size_t d = i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i;
    int64_t stride = tensor.strides()[d];
    if (tensor.sizes()[d] == 0 || stride < extent) return MemoryFormat::contiguous;
    // Nothing but samples: every order is the same.
    if (d == 0 && extent == tensor.strides()[1]) return MemoryFormat::contiguous;
    extent = stride * tensor.sizes()[d];
  }
  return channels_last_for(int64_t(ndim));
}

Tensor in_format(const Tensor& tensor, MemoryFormat format) {
  return tensor.is_contiguous(format) ? tensor : clone_dense(tensor, format);
}

}  // namespace rushlight
