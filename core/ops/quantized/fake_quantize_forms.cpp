// Owns the forms of fake quantization that Python calls: one scale for all numbers or one for each
// channel. Both are _fake_quantize of fake_quantize.cpp.
#include "core/ops/op.h"

namespace rushlight {
namespace {

Tensor fake_quantize(const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                     int64_t quant_min, int64_t quant_max) {
  CHECK(quant_min <= quant_max,
        "`quant_min` should be less than or equal to `quant_max`, but they are ", quant_min,
        " and ", quant_max, ".");
  Tensor result = call<"_fake_quantize", Tensor>(input, scale, zero_point, double(quant_min),
                                                 double(quant_max), 1.0);
  return cast(result, input.dtype());
}

// Half types are too coarse for scales.
Tensor parameter_for(const Tensor& input, const Tensor& parameter) {
  return detach(cast(parameter, is_half(input.dtype()) ? DType::float32 : input.dtype()));
}

// One number, which broadcasts to inputs without dims too.
Tensor single(const Tensor& parameter, const Tensor& input, const char* name) {
  CHECK(parameter.numel() == 1, name, " must hold one number, but has shape ", parameter.sizes(),
        ". Use the form for channels for several.");
  return parameter_for(input, reshape(parameter, Shape{}));
}

// A vector of one number for each channel as a tensor that broadcasts along the others.
Tensor by_channel(const Tensor& parameter, const Tensor& input, int64_t axis, const char* name) {
  CHECK(axis >= 0 && axis < input.dim(),
        "`axis` must be between 0 and number of dimensions of "
        "input, but is ",
        axis, " for shape ", input.sizes(), ".");
  CHECK(parameter.dim() == 1 && parameter.numel() == input.size(axis), name,
        " must hold a number for each of the ", input.size(axis), " channels, but has shape ",
        parameter.sizes(), ".");
  Shape sizes(size_t(input.dim()), 1);
  sizes[size_t(axis)] = parameter.numel();
  return parameter_for(input, reshape(parameter, sizes));
}

}  // namespace

// The form with numbers comes second: it would read tensors of one element as numbers.
OP(fake_quantize_per_tensor_affine,
   "(Tensor input, Tensor scale, Tensor zero_point, "
   "int quant_min, int quant_max) -> Tensor", {
  .doc     = R"(The numbers that quantized ones would stand for: the nearest that the scale has.

    (clamp(round(input / scale) + zero_point, quant_min, quant_max) - zero_point) * scale

The gradient passes straight through where nothing was cut off, and is 0 elsewhere.

Example:
    >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.14, 9.0]), 0.1, 0, 0, 63)
    tensor([0.1000, 6.3000]))",
  .dtypes  = floating,
  .variants = function,
  .forward = [](const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                int64_t quant_min, int64_t quant_max) {
    return fake_quantize(input, single(scale, input, "scale"),
                         single(zero_point, input, "zero_point"), quant_min, quant_max);
  },
})

OP(fake_quantize_per_tensor_affine_number,
   "fake_quantize_per_tensor_affine.number(Tensor input, float scale, int zero_point, "
   "int quant_min, int quant_max) -> Tensor", {
  .dtypes  = floating,
  .variants = function,
  .autocast = autocast::single,
  .forward = [](const Tensor& input, double scale, int64_t zero_point, int64_t quant_min,
                int64_t quant_max) {
    CHECK(zero_point >= quant_min && zero_point <= quant_max,
          "`zero_point` must be between `quant_min` and `quant_max`, but is ", zero_point,
          " for ", quant_min, " to ", quant_max, ".");
    return fake_quantize(input, wrapped_number(scale), wrapped_number(double(zero_point)),
                         quant_min, quant_max);
  },
})

OP(fake_quantize_per_channel_affine,
   "(Tensor input, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> "
   "Tensor", {
  .doc     = R"(fake_quantize_per_tensor_affine with a scale and zero point for each channel.

Args:
    input: of any shape.
    scale: a number for each index along `axis`.
    zero_point: the same, integers or floats.
    axis: the dim of the channels.
    quant_min: the smallest quantized number.
    quant_max: the largest.)",
  .dtypes  = floating,
  .variants = function,
  .forward = [](const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                int64_t quant_min, int64_t quant_max) {
    Tensor scales = by_channel(scale, input, axis, "scale");
    Tensor zeros = by_channel(zero_point, input, axis, "zero_point");
    if (!is_floating(zero_point.dtype()))
      return fake_quantize(input, scales, zeros, quant_min, quant_max);
    // Zero points between the integers count before numbers are rounded.
    Tensor shift = zeros * scales;
    Tensor shifted = fake_quantize(input + shift, scales, zeros_like(zeros), quant_min, quant_max);
    return cast(shifted - shift, input.dtype());
  },
})

}  // namespace rushlight
