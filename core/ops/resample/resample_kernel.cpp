// Defines the kernel of resampling but for the arithmetic: layouts and memory for results.
#include <algorithm>

#include "core/ops/resample/resample.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

MemoryFormat format_of(const Tensor& input, int64_t dims) {
  bool images = input.dim() == dims + 2 && dims >= 2;
  return images ? suggested_format(input) : MemoryFormat::contiguous;
}

Tensor empty_resampled(const Tensor& input, ShapeRef size, MemoryFormat format) {
  Shape sizes = input.sizes();
  std::copy(size.begin(), size.end(), sizes.end() - size.size());
  return empty_strided(sizes, strides_for(sizes, format), input.dtype(), input.device());
}

ResampleOperand resample_operand(const Tensor& input, size_t dims, MemoryFormat format) {
  ResampleOperand layout{1, 1};
  for (int64_t d = 0; d < input.dim() - int64_t(dims); ++d)
    (format != MemoryFormat::contiguous && d == 1 ? layout.pixel : layout.planes) *= input.size(d);
  return layout;
}

namespace {

using Axes = std::span<const ResampleAxis>;

bool all_move(Axes axes) {
  return std::all_of(axes.begin(), axes.end(), [](auto& axis) { return axis.moves(); });
}

void resample_into(Axes axes, MemoryFormat format, const Tensor& input, const Tensor& result) {
  ResampleOperand layout = resample_operand(input, axes.size(), format);
  std::vector<ResampleAxis> volume(3 - axes.size(), ResampleAxis::same(1));
  volume.insert(volume.end(), axes.begin(), axes.end());
  std::span<const ResampleAxis, 3> three(volume);
  if (result.device().is_cpu()) resample_on_cpu(three, layout, input, result);
  else resample_on_cuda(three, layout, input, result);
}

// Bytes are rounded after each dim, the last one first, as PyTorch does it.
void resample_by_dims(Axes axes, MemoryFormat format, Tensor input, const Tensor& result) {
  ResampleOperand layout = resample_operand(input, axes.size(), format);
  size_t first = 0;  // of the dims that change
  while (axes[first].is_same()) ++first;
  for (size_t d = axes.size(); d-- > first;) {
    if (axes[d].is_same()) continue;
    std::vector<ResampleAxis> one;
    Shape size;
    int64_t outer = layout.planes, inner = layout.pixel;
    for (size_t e = 0; e < axes.size(); ++e) {
      one.push_back(e == d ? axes[e] : ResampleAxis::same(e < d ? axes[e].size : axes[e].out));
      size.push_back(one.back().out);
      if (e != d) (e < d ? outer : inner) *= size.back();
    }
    Tensor next = d == first ? result : empty_resampled(input, size, format);
    if (result.device().is_cpu()) resample_bytes_on_cpu(axes[d], outer, inner, input, next);
    else resample_into(one, format, input, next);
    input = next;
  }
}

}  // namespace

Tensor resample_kernel(const Tensor& input, ShapeRef size,
                       const std::function<std::vector<ResampleAxis>()>& make_axes) {
  MemoryFormat format = format_of(input, int64_t(size.size()));
  Tensor result = empty_resampled(input, size, format);
  if (result.numel() == 0 || result.device().is_meta()) return result;
  std::vector<ResampleAxis> axes = make_axes();
  Tensor dense = in_format(input, format);
  bool is_bytes = input.dtype() == DType::uint8 && !all_move(axes);
  for (ResampleAxis& axis : axes)  // PyTorch copies bytes where a size stays, whatever the scale
    if (is_bytes && axis.size == axis.out) axis = ResampleAxis::same(axis.size);
  if (is_bytes && !all_move(axes)) resample_by_dims(axes, format, dense, result);
  else resample_into(axes, format, dense, result);
  return result;
}

}  // namespace rushlight
