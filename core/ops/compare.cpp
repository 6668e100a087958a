// Owns comparisons: element by element, and of whole tensors.
#include "core/ops/op.h"

namespace rushlight {

POINTWISE(eq_value, (N input, N other), input == other)
OP(eq, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(Whether two elements are equal: input == other.

Example:
    >>> torch.eq(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True, False]))",
  .forward = formula<eq_value>,
})

POINTWISE(ne_value, (N input, N other), input != other)
OP(ne, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "Whether two elements differ: input != other.",
  .aliases = "not_equal",
  .forward = formula<ne_value>,
})

POINTWISE(lt_value, (R input, R other), input < other)
OP(lt, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "Whether an element is smaller: input < other.",
  .dtypes  = real,
  .aliases = "less",
  .forward = formula<lt_value>,
})

POINTWISE(le_value, (R input, R other), input <= other)
OP(le, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "Whether an element is smaller or equal: input <= other.",
  .dtypes  = real,
  .aliases = "less_equal",
  .forward = formula<le_value>,
})

POINTWISE(gt_value, (R input, R other), input > other)
OP(gt, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "Whether an element is larger: input > other.",
  .dtypes  = real,
  .aliases = "greater",
  .forward = formula<gt_value>,
})

POINTWISE(ge_value, (R input, R other), input >= other)
OP(ge, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "Whether an element is larger or equal: input >= other.",
  .dtypes  = real,
  .aliases = "greater_equal",
  .forward = formula<ge_value>,
})

OP(equal, "(Tensor input, Tensor other) -> bool", {
  .doc     = R"(Whether two tensors have the same shape and equal elements.

Example:
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True)",
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, const Tensor& other) {
    if (input.sizes() != other.sizes()) return false;
    auto same = [](const Tensor& a, const Tensor& b) {
      return item(call<"all", Tensor>(eq(a, b), std::optional<ShapeRef>(), false)).to<bool>();
    };
    constexpr int64_t kFirstPart = 4096;
    int64_t numel = input.numel();
    if (numel <= kFirstPart || !input.device().is_cpu()) return same(input, other);
    bool flat = input.is_contiguous() && other.is_contiguous();
    // What differs mostly does so at once.
    auto begins_alike = [&]<class T>(Tag<T>) {
      constexpr int64_t kFirst = 16;
      bool alike = true;
      if constexpr (std::is_arithmetic_v<T>)
        for (int64_t i = 0; i < kFirst; ++i) alike &= input.data<T>()[i] == other.data<T>()[i];
      return alike;
    };
    DType dtype = input.dtype();
    if (flat && dtype == other.dtype() && input.has_elements() && other.has_elements() &&
        (is_integral(dtype) || dtype == DType::float32 || dtype == DType::float64) &&
        !visit_dtype(dtype, begins_alike))
      return false;
    Tensor a = flat ? reshape(input, Shape{-1}) : input;
    Tensor b = flat ? reshape(other, Shape{-1}) : other;
    int64_t rows = a.size(0), begin = 0;
    // Parts that grow, so that a later difference is found early; large ones run on threads.
    for (int64_t part = std::max<int64_t>(1, kFirstPart * rows / numel); begin < rows; part *= 4) {
      int64_t length = std::min(part, rows - begin);
      if (!same(narrow(a, 0, begin, length), narrow(b, 0, begin, length))) return false;
      begin += length;
    }
    return true;
  },
})

// How far integers differ is computed in double precision.
OP(isclose,
   "(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)"
   " -> Tensor", {
  .doc     = R"(Whether two elements are close: abs(input - other) <= atol + rtol * abs(other).

Equal infinities are close; NaNs only with equal_nan.)",
  .forward = [](const Tensor& input, const Tensor& other, double rtol, double atol,
                bool equal_nan) {
    CHECK(rtol >= 0 && atol >= 0, "rtol and atol must not be negative, got ", rtol, " and ", atol);
    auto floats = [](const Tensor& t) {
      return is_differentiable(t.dtype()) ? t : to_dtype(t, DType::float64);
    };
    Tensor close = input == other;
    if (rtol != 0 || atol != 0) {
      Tensor b = floats(other), error = abs(floats(input) - b);
      close = close | ((error <= abs(b) * rtol + atol) & isfinite(error));
    }
    return equal_nan ? close | (isnan(input) & isnan(other)) : close;
  },
})

OP(allclose,
   "(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)"
   " -> bool", {
  .doc     = R"(Whether all elements of two tensors are close; see isclose.

Example:
    >>> torch.allclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))
    True)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& other, double rtol, double atol,
                bool equal_nan) {
    Tensor close = call<"isclose", Tensor>(input, other, rtol, atol, equal_nan);
    return item(call<"all", Tensor>(close, std::optional<ShapeRef>(), false)).to<bool>();
  },
})

}  // namespace rushlight
