// Defines what pointwise ops need besides formulas: questions about all elements of a tensor, and
// about the bits of half types.
#include <algorithm>

#include "core/ops/ops.h"
#include "core/tensor/lift.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

void refuse_integer_division_by_zero(const Tensor& input, const Tensor& other) {
  if (is_differentiable(input.dtype()) || is_differentiable(other.dtype())) return;
  if (input.numel() == 0) return;  // nothing is divided
  // Other devices would have to be waited for; as in PyTorch, they give some number instead.
  if (!other.device().is_cpu()) return;
  Tensor divisors = to_contiguous(other);
  bool any_zero = visit_dtype(divisors.dtype(), [&]<class T>(Tag<T>) {
    if constexpr (std::is_integral_v<T>) {
      const T* first = divisors.data<T>();
      return std::find(first, first + divisors.numel(), T(0)) != first + divisors.numel();
    }
    return false;
  });
  CHECK(!any_zero, "ZeroDivisionError: an integer is divided by zero.");
}

// Away from zero, the bits of a half type count up, whatever the sign.
Tensor next_half(const Tensor& input, const Tensor& other) {
  auto as = [](const Tensor& t, DType dtype) {
    return call<"view_dtype", Tensor>(t, std::optional(dtype));
  };
  Tensor grows = eq(input > 0, other > input);
  Tensor step = to_dtype(grows, DType::int16) * 2 - 1;
  Tensor stepped = as(as(input, DType::int16) + step, input.dtype());
  Tensor least = as(full({}, 1, DType::int16, input.device()), input.dtype());
  Tensor next = where(input == 0, call<"copysign", Tensor>(least, other), stepped);
  Tensor has_nan = logical_or(isnan(input), isnan(other));
  return where(has_nan, input + other, where(input == other, other, next));
}

Tensor scaled(const Tensor& g, const Scalar& factor) {
  std::complex<double> value = factor.to<std::complex<double>>();
  if (value == 1.0) return g;
  return factor.is_complex() ? g * Scalar(std::conj(value)) : g * factor;
}

bool all_true(const Tensor& input) {
  const Tensor& all = bottom(input);
  if (!all.device().is_cpu())
    return item(call<"all", Tensor>(all, std::optional<ShapeRef>(), false)).to<bool>();
  Tensor flags = to_contiguous(all);
  const uint8_t* first = static_cast<const uint8_t*>(flags.data());
  return std::find(first, first + flags.numel(), 0) == first + flags.numel();
}

}  // namespace rushlight
