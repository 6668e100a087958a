// Defines the kernel of resampling but for the arithmetic: layouts, dtypes and memory for results.
#include <algorithm>

#include "core/ops/resample.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

MemoryFormat format_of(const Tensor& input, int64_t dims) {
  if (input.dim() != dims + 2 || dims < 2 || input.is_contiguous()) return MemoryFormat::contiguous;
  MemoryFormat last = dims == 2 ? MemoryFormat::channels_last : MemoryFormat::channels_last_3d;
  return input.is_contiguous(last) ? last : MemoryFormat::contiguous;
}

Tensor in_layout(const Tensor& like, DType dtype) {
  return empty_strided(like.sizes(), like.strides(), dtype, like.device());
}

// What the loops of the CPU compute in: real numbers of 4 or 8 bytes. Elements that only move are
// taken for such numbers by their size, which changes no bit.
DType carrier_of(DType dtype, bool moves) {
  if (dtype_size(dtype) >= 4 && moves) return dtype;
  return is_half(dtype) || !is_differentiable(dtype) ? DType::float32 : dtype;
}

void resample_converted(std::span<const ResampleAxis, 3> axes, ResampleOperand layout, bool moves,
                        const Tensor& input, const Tensor& result) {
  DType carrier = carrier_of(input.dtype(), moves);
  if (is_complex(carrier)) layout.pixel *= 2;
  if (carrier == input.dtype()) return resample_on_cpu(axes, layout, input, result);
  Tensor wide = in_layout(input, carrier), wide_result = in_layout(result, carrier);
  copy_into(wide, input);
  resample_on_cpu(axes, layout, wide, wide_result);
  if (result.dtype() == DType::uint8 && !moves) {
    float* at = wide_result.data<float>();
    for (int64_t i = 0; i < wide_result.numel(); ++i)
      at[i] = std::clamp(__builtin_rintf(at[i]), 0.0f, 255.0f);
  }
  copy_into(result, wide_result);
}

// Bytes are rounded after each dim, the last one first, as PyTorch does it.
Tensor resample_by_dims(std::span<const ResampleAxis> axes, const Tensor& input) {
  Tensor result = input;
  for (size_t d = axes.size(); d-- > 0;) {
    std::vector<ResampleAxis> one;
    for (size_t e = 0; e < axes.size(); ++e)
      one.push_back(e == d ? axes[e] : ResampleAxis::same(e < d ? axes[e].size : axes[e].out));
    result = resample_kernel(one, result);
  }
  return result;
}

}  // namespace

Tensor resample_kernel(std::span<const ResampleAxis> axes, const Tensor& input) {
  auto is_same = [](const ResampleAxis& axis) { return axis.is_same(); };
  bool is_plain = std::count_if(axes.begin(), axes.end(), is_same) + 1 >= int64_t(axes.size());
  bool moves = std::all_of(axes.begin(), axes.end(), [](auto& axis) { return axis.moves(); });
  if (input.dtype() == DType::uint8 && !moves && !is_plain) return resample_by_dims(axes, input);
  int64_t dims = int64_t(axes.size()), lead = input.dim() - dims;
  MemoryFormat format = format_of(input, dims);
  Shape sizes = input.sizes();
  ResampleOperand layout{1, 1};
  for (int64_t d = 0; d < lead; ++d)
    (format != MemoryFormat::contiguous && d == 1 ? layout.pixel : layout.planes) *= sizes[d];
  std::vector<ResampleAxis> volume(size_t(3 - dims), ResampleAxis::same(1));
  volume.insert(volume.end(), axes.begin(), axes.end());
  for (int64_t d = 0; d < dims; ++d) {
    ASSERT(sizes[lead + d] == axes[size_t(d)].size);
    sizes[lead + d] = axes[size_t(d)].out;
  }
  Tensor result = empty_strided(sizes, strides_for(sizes, format), input.dtype(), input.device());
  if (result.numel() == 0 || result.device().is_meta()) return result;
  Tensor dense = format == MemoryFormat::contiguous ? to_contiguous(input) : input;
  std::span<const ResampleAxis, 3> three(volume);
  if (result.device().is_cpu()) resample_converted(three, layout, moves, dense, result);
  else resample_on_cuda(three, layout, dense, result);
  return result;
}

}  // namespace rushlight
