// Owns the way between floats and quantized integers, and sums of quantized integers. A quantized
// tensor is a tensor of integers here; rushlight/_quantized.py keeps its scale beside it.
#include "core/device/threads.h"
#include "core/ops/op.h"
#include "core/ops/operands.h"
#include "core/ops/quantized/quantized.h"
#include "core/tensor/memory_order.h"

namespace rushlight {

ISA_TABLES(QuantizedLoops, quantized_loops)

const QuantizedLoops& quantized_loops() { return active(quantized_loops_sets); }

namespace {

constexpr int64_t kGrain = 1 << 15;  // numbers that are worth a thread

constexpr DTypeSet single_precision([](DType t) { return t == DType::float32; });
constexpr DTypeSet storable([](DType t) {
  return t == DType::int8 || t == DType::uint8 || t == DType::int32;
});

struct Type {
  QuantizedType number;
  int32_t low, high;
};
Type type_of(DType dtype) {
  switch (dtype) {
    case DType::int8: return {QuantizedType::int8, -128, 127};
    case DType::uint8: return {QuantizedType::uint8, 0, 255};
    case DType::int32: return {QuantizedType::int32, INT32_MIN, INT32_MAX};
    default:
      CHECK(false, "quantized numbers are int8, uint8 or int32, but not ", dtype_name(dtype), ".");
  }
}

// Calls f(offset, count) for parts of a tensor's memory.
template <class F>
void for_each_part(int64_t numel, F&& f) {
  parallel_for(0, numel, kGrain, [&](int64_t begin, int64_t end) { f(begin, end - begin); });
}

// The forms of a row-major tensor's channels.
struct ChannelForms {
  Tensor scales, zero_points;
  int64_t run = 1;  // elements of one channel side by side

  ChannelForms(const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t axis)
      : scales(prepared(scale, DType::float32)), zero_points(prepared(zero_point, DType::int32)) {
    CHECK(axis >= 0 && axis < input.dim(), "axis must be from 0 to ", input.dim() - 1, ", but is ",
          axis, ".");
    for (const Tensor* list : {&scales, &zero_points})
      CHECK(list->dim() == 1 && list->numel() == input.size(axis),
            "needs one scale and zero point ", "for each of the ", input.size(axis),
            " channels, but has ", list->sizes(), ".");
    for (int64_t d = axis + 1; d < input.dim(); ++d) run *= input.size(d);
  }

  // Calls of_run(offset, count, form) for the runs of a tensor, or, where these are short,
  // of_row(offset, count, scales, zero points) for parts in which each element has its own form.
  template <class OfRun, class OfRow>
  void for_each_part(int64_t numel, OfRun&& of_run, OfRow&& of_row) const {
    constexpr int64_t kShort = 32;
    if (numel == 0) return;
    int64_t channels = scales.numel();
    if (run > kShort)
      return parallel_for(0, numel / run, kGrain / run + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          of_run(i * run, run,
                 QuantizedForm{scales.data<float>()[i % channels],
                               zero_points.data<int32_t>()[i % channels]});
      });
    Tensor row_scales = repeated(scales), row_zero_points = repeated(zero_points);
    int64_t row = channels * run;
    parallel_for(0, numel, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin, count; i < end; i += count) {
        count = std::min(end - i, row - i % row);
        of_row(i, count, row_scales.data<float>() + i % row,
               row_zero_points.data<int32_t>() + i % row);
      }
    });
  }

 private:
  Tensor repeated(const Tensor& list) const {
    return to_contiguous(expand(unsqueeze(list, 1), Shape{list.numel(), run}));
  }
};

char* at(const Tensor& tensor, int64_t offset) {
  return static_cast<char*>(tensor.data()) + offset * int64_t(tensor.itemsize());
}

// The tensor itself or a copy without gaps, in the order of its dims.
Tensor dense(const Tensor& tensor) {
  Tensor result = empty_after(tensor);
  if (result.strides() == tensor.strides()) return tensor;
  copy_into(result, tensor);
  return result;
}

}  // namespace

OP(_quantize, "(Tensor input, float scale, int zero_point, dtype? dtype) -> Tensor", {
  .home    = "private",
  .doc     = "The integers of dtype nearest to input / scale + zero_point, halves to even.",
  .dtypes  = single_precision,
  .gpu     = none<"quantized tensors live on the CPU">,
  .forward = [](const Tensor& input, double scale, int64_t zero_point, std::optional<DType> dtype) {
    Type type = type_of(dtype.value_or(DType::uint8));
    Tensor x = dense(input), out = empty_after(x, dtype.value_or(DType::uint8));
    if (out.device().is_meta()) return out;
    QuantizedForm form{float(scale), int32_t(zero_point)};
    auto* loop = quantized_loops().quantize[size_t(type.number)];
    for_each_part(x.numel(), [&](int64_t offset, int64_t count) {
      loop(x.data<float>() + offset, form, type.low, type.high, at(out, offset), count);
    });
    return out;
  },
  .grads   = grads(no_grad<"input">),
})

OP(_quantize_channels,
   "(Tensor input, Tensor scales, Tensor zero_points, int axis, dtype? dtype) -> Tensor", {
  .home    = "private",
  .doc     = "_quantize with a scale and zero point for each channel.",
  .dtypes  = single_precision,
  .gpu     = none<"quantized tensors live on the CPU">,
  .forward = [](const Tensor& input, const Tensor& scales, const Tensor& zero_points, int64_t axis,
                std::optional<DType> dtype) {
    Type type = type_of(dtype.value_or(DType::int8));
    ChannelForms forms(input, scales, zero_points, axis);
    Tensor x = to_contiguous(input);
    Tensor out = empty(x.sizes(), dtype.value_or(DType::int8), x.device());
    if (out.device().is_meta()) return out;
    auto* loop = quantized_loops().quantize[size_t(type.number)];
    auto* each = quantized_loops().quantize_each[size_t(type.number)];
    const float* from = x.data<float>();
    forms.for_each_part(
        x.numel(),
        [&](int64_t offset, int64_t count, QuantizedForm form) {
          loop(from + offset, form, type.low, type.high, at(out, offset), count);
        },
        [&](int64_t offset, int64_t count, const float* scale, const int32_t* zero_point) {
          each(from + offset, scale, zero_point, type.low, type.high, at(out, offset), count);
        });
    return out;
  },
  .grads   = grads(no_grad<"input">, no_grad<"scales">, no_grad<"zero_points">),
})

OP(_dequantize, "(Tensor input, float scale, int zero_point) -> Tensor", {
  .home    = "private",
  .doc     = "What integers stand for: (input - zero_point) * scale, in float32.",
  .dtypes  = storable,
  .gpu     = none<"quantized tensors live on the CPU">,
  .forward = [](const Tensor& input, double scale, int64_t zero_point) {
    Tensor q = dense(input), out = empty_after(q, DType::float32);
    if (out.device().is_meta()) return out;
    QuantizedForm form{float(scale), int32_t(zero_point)};
    auto* loop = quantized_loops().dequantize[size_t(type_of(q.dtype()).number)];
    for_each_part(q.numel(), [&](int64_t offset, int64_t count) {
      loop(at(q, offset), form, out.data<float>() + offset, count);
    });
    return out;
  },
  .grads   = grads(no_grad<"input">),
})

OP(_dequantize_channels,
   "(Tensor input, Tensor scales, Tensor zero_points, int axis) -> Tensor", {
  .home    = "private",
  .doc     = "_dequantize with a scale and zero point for each channel.",
  .dtypes  = storable,
  .gpu     = none<"quantized tensors live on the CPU">,
  .forward = [](const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                int64_t axis) {
    ChannelForms forms(input, scales, zero_points, axis);
    Tensor q = to_contiguous(input), out = empty(q.sizes(), DType::float32, q.device());
    if (out.device().is_meta()) return out;
    auto* loop = quantized_loops().dequantize[size_t(type_of(q.dtype()).number)];
    auto* each = quantized_loops().dequantize_each[size_t(type_of(q.dtype()).number)];
    float* to = out.data<float>();
    forms.for_each_part(
        q.numel(),
        [&](int64_t offset, int64_t count, QuantizedForm form) {
          loop(at(q, offset), form, to + offset, count);
        },
        [&](int64_t offset, int64_t count, const float* scale, const int32_t* zero_point) {
          each(at(q, offset), scale, zero_point, to + offset, count);
        });
    return out;
  },
  .grads   = grads(no_grad<"input">, no_grad<"scales">, no_grad<"zero_points">),
})

OP(_quantized_add,
   "(Tensor input, float scale, int zero_point, Tensor other, float other_scale, "
   "int other_zero_point, float out_scale, int out_zero_point, bool relu) -> Tensor", {
  .home    = "private",
  .doc     = "The quantized sum, or its positive part, of two tensors of one shape and dtype.",
  .dtypes  = storable,
  .gpu     = none<"quantized tensors live on the CPU">,
  .forward = [](const Tensor& input, double scale, int64_t zero_point, const Tensor& other,
                double other_scale, int64_t other_zero_point, double out_scale,
                int64_t out_zero_point, bool relu) {
    Type type = type_of(input.dtype());
    CHECK(input.dtype() == other.dtype() && type.number != QuantizedType::int32,
          "needs two tensors of int8 or two of uint8, but has ", dtype_name(input.dtype()), " and ",
          dtype_name(other.dtype()), ".");
    CHECK(same_shape(input.sizes(), other.sizes()), "needs tensors of one shape, but has ",
          input.sizes(), " and ", other.sizes(), ".");
    Tensor a = dense(input), out = empty_after(a), b = other;
    if (out.device().is_meta()) return out;
    if (b.strides() != a.strides()) copy_into(b = empty_after(a), other);
    QuantizedForm a_form{float(scale), int32_t(zero_point)};
    QuantizedForm b_form{float(other_scale), int32_t(other_zero_point)};
    QuantizedForm form{float(out_scale), int32_t(out_zero_point)};
    int32_t low = relu ? std::max(type.low, form.zero_point) : type.low;
    auto* loop = quantized_loops().add[size_t(type.number)];
    for_each_part(a.numel(), [&](int64_t offset, int64_t count) {
      loop(at(a, offset), a_form, at(b, offset), b_form, form, low, at(out, offset), count);
    });
    return out;
  },
  .grads   = grads(no_grad<"input">, no_grad<"other">),
})

}  // namespace rushlight
