// Owns quantization that stays in floats: numbers are rounded to those that 8 bits can stand for,
// while gradients pass straight through (Jacob et al. 2018), for training with what inference will
// do. The gradients of scale and zero point are those of LSQ+ (Bhalgat et al. 2020).
#include "core/ops/op.h"

namespace rushlight {

POINTWISE(fake_quantize_value, (T input, T scale, T zero_point, S quant_min, S quant_max),
          (clamp(round(input * (S(1) / scale)) + clamp(round(zero_point), quant_min, quant_max),
                 quant_min, quant_max) -
           clamp(round(zero_point), quant_min, quant_max)) *
              scale)
OP(_fake_quantize,
   "(Tensor input, Tensor scale, Tensor zero_point, float quant_min, float quant_max, "
   "float grad_factor) -> Tensor", {
  .home    = "private",
  .doc     = "The numbers that quantized ones stand for; scale and zero_point broadcast.",
  .dtypes  = floating,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                double quant_min, double quant_max, double) {
    return pointwise<fake_quantize_value>(input, scale, zero_point, quant_min, quant_max);
  },
  .saves   = saves<"input", "scale", "zero_point">,
  .grads   = grads(
    d<"input">([](const Tensor& g, const Tensor& input, const Tensor& scale,
                  const Tensor& zero_point, double quant_min, double quant_max, double) {
      return g * call<"_fake_quantize_slope", Tensor>(input, scale, zero_point, quant_min,
                                                      quant_max);
    }),
    d<"scale">([](const Tensor& g, const Tensor& input, const Tensor& scale,
                  const Tensor& zero_point, double quant_min, double quant_max, double factor) {
      return g * Scalar(factor) * call<"_fake_quantize_scale_slope", Tensor>(
                                      input, scale, zero_point, quant_min, quant_max);
    }),
    d<"zero_point">([](const Tensor& g, const Tensor& input, const Tensor& scale,
                       const Tensor& zero_point, double quant_min, double quant_max,
                       double factor) {
      Tensor inside = call<"_fake_quantize_slope", Tensor>(input, scale, zero_point, quant_min,
                                                           quant_max);
      return g * Scalar(factor) * (inside - Scalar(1)) * scale;
    })),
})

POINTWISE(fake_quantize_slope, (T input, T scale, T zero_point, S quant_min, S quant_max),
          select((round(input * (S(1) / scale)) +
                      clamp(round(zero_point), quant_min, quant_max) <
                  quant_min) |
                     (round(input * (S(1) / scale)) +
                          clamp(round(zero_point), quant_min, quant_max) >
                      quant_max),
                 S(0), S(1)))
OP(_fake_quantize_slope,
   "(Tensor input, Tensor scale, Tensor zero_point, float quant_min, float quant_max) -> Tensor", {
  .home    = "core",
  .doc     = "1 where _fake_quantize rounds, 0 where it cuts off.",
  .dtypes  = floating,
  .batch   = by_elements,
  .forward = formula<fake_quantize_slope>,
  .grads   = grads(no_grad<"input">, no_grad<"scale">, no_grad<"zero_point">),
})

// Outside of the range the result is (bound - zero_point) * scale; inside it, the rounding error
// counts as a constant number of steps.
POINTWISE(fake_quantize_scale_slope, (T input, T scale, T zero_point, S quant_min, S quant_max),
          select(round(input * (S(1) / scale)) + clamp(round(zero_point), quant_min, quant_max) <
                     quant_min,
                 quant_min - clamp(round(zero_point), quant_min, quant_max),
                 select(round(input * (S(1) / scale)) +
                                clamp(round(zero_point), quant_min, quant_max) >
                            quant_max,
                        quant_max - clamp(round(zero_point), quant_min, quant_max),
                        round(input * (S(1) / scale)) - input / scale)))
OP(_fake_quantize_scale_slope,
   "(Tensor input, Tensor scale, Tensor zero_point, float quant_min, float quant_max) -> Tensor", {
  .home    = "core",
  .doc     = "The slope of _fake_quantize along the scale.",
  .dtypes  = floating,
  .batch   = by_elements,
  .forward = formula<fake_quantize_scale_slope>,
  .grads   = grads(no_grad<"input">, no_grad<"scale">, no_grad<"zero_point">),
})

}  // namespace rushlight
