// Defines what pointwise ops need besides formulas: questions about all elements of a tensor.
#include <algorithm>

#include "core/ops/ops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

void refuse_integer_division_by_zero(const Tensor& input, const Tensor& other) {
  if (is_differentiable(input.dtype()) || is_differentiable(other.dtype())) return;
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

Tensor scaled(const Tensor& g, const Scalar& factor) {
  std::complex<double> value = factor.to<std::complex<double>>();
  if (value == 1.0) return g;
  return factor.is_complex() ? g * Scalar(std::conj(value)) : g * factor;
}

bool all_true(const Tensor& input) {
  if (!input.device().is_cpu())
    return item(call<"all", Tensor>(input, std::optional<ShapeRef>(), false)).to<bool>();
  Tensor flags = to_contiguous(input);
  const bool* first = flags.data<bool>();
  return std::find(first, first + flags.numel(), false) == first + flags.numel();
}

}  // namespace rushlight
