// Owns arithmetic, extrema, selection and bit operations on two or three tensors, any of which
// but the first may be a Python number. Comparisons are in compare.cpp.
#include "core/ops/op.h"

namespace rushlight {

// ---- sums and products --------------------------------------------------------------------------

POINTWISE(add_value, (N input, N other, S alpha), input + other * alpha)
OP(add, "(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor", {
  .doc     = R"(input + alpha * other.

Example:
    >>> torch.add(torch.tensor([1.0, 2.0]), 3)
    tensor([4., 5.]))",
  .sparse  = sparse_add,
  .forward = formula<add_value>,
  .grads   = grads(
      d<"input">([](const Tensor& g) { return g; }),
      d<"other">([](const Tensor& g, const Scalar& alpha) { return scaled(g, alpha); })),
})

// The order of arguments that PyTorch had first, and still takes.
OP(add_scaled, "add.scaled(Tensor input, Scalar alpha, Tensor other) -> Tensor", {
  .doc     = "The same in the order of early versions.",
  .variants = function | method | inplace,
  .forward = [](const Tensor& input, Scalar alpha, const Tensor& other) {
    return call<"add", Tensor>(input, other, alpha);
  },
})

POINTWISE(sub_value, (N input, N other, S alpha), input - other * alpha)
OP(sub, "(Tensor|Scalar input, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", {
  .doc     = "input - alpha * other.",
  .dtypes  = numeric,
  .aliases = "subtract",
  .sparse  = sparse_sub,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, Scalar alpha, const Tensor* into) {
    CHECK(!is_bool(other.dtype()), "Subtraction, the `-` operator, with a bool tensor is not "
          "supported. Use the `~` or `logical_not()` operator to invert a mask.");
    return pointwise_into<sub_value>(into, input, other, alpha);
  },
  .grads   = grads(
      d<"input">([](const Tensor& g) { return g; }),
      d<"other">([](const Tensor& g, const Scalar& alpha) { return -scaled(g, alpha); })),
})

OP(sub_scaled, "sub.scaled(Tensor input, Scalar alpha, Tensor|Scalar other) -> Tensor", {
  .doc     = "The same in the order of early versions.",
  .dtypes  = numeric,
  .variants = function | method | inplace,
  .forward = [](const Tensor& input, Scalar alpha, const Tensor& other) {
    return call<"sub", Tensor>(input, other, alpha);
  },
})

OP(rsub, "(Tensor|Scalar input, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", {
  .doc     = "other - alpha * input: subtraction the other way round.",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& other, Scalar alpha) {
    return sub(other, input, alpha);
  },
})

POINTWISE(mul_value, (N input, N other), input * other)
POINTWISE(mul_grad_input, (C g, C other), g * conj(other))
POINTWISE(mul_grad_other, (C g, C input), g * conj(input))
OP(mul, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "input * other.",
  .aliases = "multiply",
  .sparse  = sparse_mul,
  .forward = formula<mul_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<mul_grad_input>), d<"other">(formula<mul_grad_other>)),
})

#ifndef RUSHLIGHT_ISA
// A gradient formula times a number; formulas take real ones, so a complex one scales g first.
template <class F, class... Saved>
Tensor scaled_gradient(const Tensor& g, const Scalar& value, const Saved&... saved) {
  if (value.is_complex()) return evaluate<F>(scaled(g, value), saved..., 1.0);
  return evaluate<F>(g, saved..., value.to<double>());
}
#endif

POINTWISE(addcmul_value, (N input, N tensor1, N tensor2, S value),
          input + tensor1 * tensor2 * value)
POINTWISE(addcmul_grad_tensor1, (C g, C tensor2, S value), g * conj(tensor2 * value))
POINTWISE(addcmul_grad_tensor2, (C g, C tensor1, S value), g * conj(tensor1 * value))
OP(addcmul, "(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", {
  .doc     = "input + value * tensor1 * tensor2.",
  .autocast = autocast::on_cuda(autocast::widest),
  .forward = formula<addcmul_value>,
  .saves   = saves<"tensor1", "tensor2">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor&, const Tensor&) { return g; }),
                   d<"tensor1">([](const Tensor& g, const Tensor&, const Tensor& tensor2,
                                   const Scalar& value) {
                     return scaled_gradient<addcmul_grad_tensor1>(g, value, tensor2);
                   }),
                   d<"tensor2">([](const Tensor& g, const Tensor& tensor1, const Tensor&,
                                   const Scalar& value) {
                     return scaled_gradient<addcmul_grad_tensor2>(g, value, tensor1);
                   })),
})

OP(addcmul_scaled,
   "addcmul.scaled(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor", {
  .doc     = "The same in the order of early versions.",
  .variants = function | method | inplace,
  .forward = [](const Tensor& input, Scalar value, const Tensor& tensor1, const Tensor& tensor2) {
    return call<"addcmul", Tensor>(input, tensor1, tensor2, value);
  },
})

POINTWISE(addcdiv_value, (C input, C tensor1, C tensor2, S value),
          input + tensor1 / tensor2 * value)
POINTWISE(addcdiv_grad_tensor1, (C g, C tensor2, S value), g * conj(S(1) / tensor2 * value))
POINTWISE(addcdiv_grad_tensor2, (C g, C tensor1, C tensor2, S value),
          -g * conj(tensor1 / (tensor2 * tensor2) * value))
OP(addcdiv, "(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", {
  .doc     = "input + value * tensor1 / tensor2; integers give floats.",
  .autocast = autocast::on_cuda(autocast::widest),
  .forward = formula<addcdiv_value>,
  .saves   = saves<"tensor1", "tensor2">,
  .grads   = grads(d<"input">([](const Tensor& g, const Tensor&, const Tensor&) { return g; }),
                   d<"tensor1">([](const Tensor& g, const Tensor&, const Tensor& tensor2,
                                   const Scalar& value) {
                     return scaled_gradient<addcdiv_grad_tensor1>(g, value, tensor2);
                   }),
                   d<"tensor2">([](const Tensor& g, const Tensor& tensor1, const Tensor& tensor2,
                                   const Scalar& value) {
                     return scaled_gradient<addcdiv_grad_tensor2>(g, value, tensor1, tensor2);
                   })),
})

OP(addcdiv_scaled,
   "addcdiv.scaled(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor", {
  .doc     = "The same in the order of early versions.",
  .variants = function | method | inplace,
  .forward = [](const Tensor& input, Scalar value, const Tensor& tensor1, const Tensor& tensor2) {
    return call<"addcdiv", Tensor>(input, tensor1, tensor2, value);
  },
})

// Both forms are exact at their end of the range.
POINTWISE(lerp_value, (C input, C end, C weight),
          select(real(weight * conj(weight)) < real(S(0.25)), input + weight * (end - input),
                 end - (end - input) * (S(1) - weight)))
POINTWISE(lerp_grad_input, (C g, C weight), g - g * conj(weight))
POINTWISE(lerp_grad_end, (C g, C weight), g * conj(weight))
POINTWISE(lerp_grad_weight, (C g, C input, C end), g * conj(end - input))
OP(lerp, "(Tensor input, Tensor end, Tensor weight) -> Tensor", {
  .doc     = R"(Between two tensors: input + weight * (end - input).

Example:
    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([10.0, 20.0]), 0.25)
    tensor([ 2.5000, 12.5000]))",
  .forward = formula<lerp_value>,
  .saves   = saves<"input", "end", "weight">,
  .grads   = grads(d<"input">(formula<lerp_grad_input>), d<"end">(formula<lerp_grad_end>),
                   d<"weight">(formula<lerp_grad_weight>)),
})

// ---- quotients and remainders -------------------------------------------------------------------

POINTWISE(div_value, (C input, C other), input / other)
POINTWISE(div_grad_input, (C g, C other), g / conj(other))
POINTWISE(div_grad_other, (C g, C other, C result), -g * conj(result / other))
OP(div, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = R"(input / other; integers give floats.

Example:
    >>> torch.div(torch.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000]))",
  .aliases = "divide true_divide",
  .sparse  = sparse_div,
  .forward = formula<div_value>,
  .saves   = saves<"other", "result">,
  .grads   = grads(d<"input">(formula<div_grad_input>), d<"other">(formula<div_grad_other>)),
})

POINTWISE(floor_divide_value, (R input, R other), floor_divide(input, other))
OP(floor_divide, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = R"(input / other, rounded down: Python's //.

Example:
    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4]))",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    refuse_integer_division_by_zero(input, other);
    return pointwise_into<floor_divide_value>(into, input, other);
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); }),
                   d<"other">([](const Tensor& g) { return zeros_like(g); })),
})

POINTWISE(trunc_divide_value, (R input, R other), trunc_divide(input, other))
OP(_trunc_divide, "(Tensor input, Tensor other) -> Tensor", {
  .home    = "core",
  .doc     = "input / other, rounded towards zero.",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    refuse_integer_division_by_zero(input, other);
    return pointwise_into<trunc_divide_value>(into, input, other);
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); }),
                   d<"other">([](const Tensor& g) { return zeros_like(g); })),
})

OP(div_rounded,
   "div.rounding_mode(Tensor|Scalar input, Tensor|Scalar other, *, str? rounding_mode) -> Tensor", {
  .doc     = R"(With rounding_mode, rounded towards zero ('trunc') or down ('floor').

Integers then give integers.)",
  .variants = function | method | inplace,
  .aliases = "divide",
  .forward = [](const Tensor& input, const Tensor& other,
                std::optional<std::string_view> rounding_mode) {
    if (!rounding_mode) return div(input, other);
    CHECK(*rounding_mode == "trunc" || *rounding_mode == "floor",
          "expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
          *rounding_mode, "'");
    return *rounding_mode == "floor" ? floor_divide(input, other) : trunc_divide(input, other);
  },
})

POINTWISE(remainder_value, (R input, R other), remainder(input, other))
OP(remainder, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = R"(The remainder of input / other with the sign of other: Python's %.

Example:
    >>> torch.remainder(torch.tensor([7, -7]), 3)
    tensor([1, 2]))",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    refuse_integer_division_by_zero(input, other);
    return pointwise_into<remainder_value>(into, input, other);
  },
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(uses<>, [](const Tensor& g) { return g; }),
      d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
        return -g * floor_divide(input, other);
      })),
})

POINTWISE(fmod_value, (R input, R other), fmod(input, other))
OP(fmod, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = "The remainder of input / other with the sign of input: C's fmod.",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    refuse_integer_division_by_zero(input, other);
    return pointwise_into<fmod_value>(into, input, other);
  },
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(uses<>, [](const Tensor& g) { return g; }),
      d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
        return -g * trunc_divide(input, other);
      })),
})

// ---- extrema ------------------------------------------------------------------------------------

// Where both are equal, each gets half of the gradient; a NaN lets all of it through.
POINTWISE(larger_grad, (T g, T input, T other),
          select(input == other, g * S(0.5), select(input < other, S(0), g)))
POINTWISE(smaller_grad, (T g, T input, T other),
          select(input == other, g * S(0.5), select(input > other, S(0), g)))

POINTWISE(maximum_value, (R input, R other), max(input, other))
OP(maximum, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The larger of two elements, NaN if one of them is.",
  .dtypes  = real,
  .forward = formula<maximum_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(formula<larger_grad>),
      d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
        return evaluate<larger_grad>(g, other, input);
      })),
})

POINTWISE(minimum_value, (R input, R other), min(input, other))
OP(minimum, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The smaller of two elements, NaN if one of them is.",
  .dtypes  = real,
  .forward = formula<minimum_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(formula<smaller_grad>),
      d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
        return evaluate<smaller_grad>(g, other, input);
      })),
})

POINTWISE(fmax_value, (R input, R other), fmax(input, other))
POINTWISE(fmax_grad_input, (T g, T input, T other),
          select((input >= other) | isnan(other), g, S(0)))
POINTWISE(fmax_grad_other, (T g, T input, T other),
          select((input >= other) | isnan(other), S(0), g))
OP(fmax, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The larger of two elements; if one is NaN, the other.",
  .dtypes  = real,
  .forward = formula<fmax_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<fmax_grad_input>), d<"other">(formula<fmax_grad_other>)),
})

POINTWISE(fmin_value, (R input, R other), fmin(input, other))
POINTWISE(fmin_grad_input, (T g, T input, T other),
          select((input <= other) | isnan(other), g, S(0)))
POINTWISE(fmin_grad_other, (T g, T input, T other),
          select((input <= other) | isnan(other), S(0), g))
OP(fmin, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The smaller of two elements; if one is NaN, the other.",
  .dtypes  = real,
  .forward = formula<fmin_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<fmin_grad_input>), d<"other">(formula<fmin_grad_other>)),
})

POINTWISE(clamp_min_grad_input, (T g, T input, T min), select(input >= min, g, S(0)))
POINTWISE(clamp_min_grad_min, (T g, T input, T min), select(input < min, g, S(0)))
OP(clamp_min, "(Tensor|Scalar input, Tensor|Scalar min) -> Tensor", {
  .doc     = "Raises elements below min to it.",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& min, const Tensor* into) {
    return pointwise_into<maximum_value>(into, input, min);
  },
  .saves   = saves<"input", "min">,
  .grads   = grads(d<"input">(formula<clamp_min_grad_input>),
                   d<"min">(formula<clamp_min_grad_min>)),
})

POINTWISE(clamp_max_grad_input, (T g, T input, T max), select(input <= max, g, S(0)))
POINTWISE(clamp_max_grad_max, (T g, T input, T max), select(input > max, g, S(0)))
OP(clamp_max, "(Tensor|Scalar input, Tensor|Scalar max) -> Tensor", {
  .doc     = "Lowers elements above max to it.",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& max, const Tensor* into) {
    return pointwise_into<minimum_value>(into, input, max);
  },
  .saves   = saves<"input", "max">,
  .grads   = grads(d<"input">(formula<clamp_max_grad_input>),
                   d<"max">(formula<clamp_max_grad_max>)),
})

// The bounds have a gradient where they decide; max decides where min is above it.
POINTWISE(clamp_value, (R input, R min, R max), clamp(input, min, max))
POINTWISE(clamp_grad_input, (T g, T input, T min, T max),
          select((input >= min) & (input <= max), g, S(0)))
POINTWISE(clamp_grad_min, (T g, T input, T min, T max),
          select((input < min) & (min < max), g, S(0)))
POINTWISE(clamp_grad_max, (T g, T input, T min, T max),
          select((input > max) | (max < min), g, S(0)))
OP(clamp, "(Tensor input, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor", {
  .doc     = R"(Brings every element into [min, max]; each bound is a number, a tensor or absent.

Example:
    >>> torch.clamp(torch.tensor([-2.0, 0.5, 3.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000]))",
  .dtypes  = real,
  .aliases = "clip",
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& min, const Tensor& max, const Tensor* into) {
    CHECK(min.defined() || max.defined(), "At least one of 'min' or 'max' must not be None");
    if (!max.defined()) return pointwise_into<maximum_value>(into, input, min);
    if (!min.defined()) return pointwise_into<minimum_value>(into, input, max);
    return pointwise_into<clamp_value>(into, input, min, max);
  },
  .saves   = saves<"input", "min", "max">,
  .grads   = grads(
      d<"input">([](const Tensor& g, const Tensor& input, const Tensor& min, const Tensor& max) {
        if (!max.defined()) return evaluate<clamp_min_grad_input>(g, input, min);
        if (!min.defined()) return evaluate<clamp_max_grad_input>(g, input, max);
        return evaluate<clamp_grad_input>(g, input, min, max);
      }),
      d<"min">([](const Tensor& g, const Tensor& input, const Tensor& min, const Tensor& max) {
        return max.defined() ? evaluate<clamp_grad_min>(g, input, min, max)
                             : evaluate<clamp_min_grad_min>(g, input, min);
      }),
      d<"max">([](const Tensor& g, const Tensor& input, const Tensor& min, const Tensor& max) {
        return min.defined() ? evaluate<clamp_grad_max>(g, input, min, max)
                             : evaluate<clamp_max_grad_max>(g, input, max);
      })),
})

// ---- selection ----------------------------------------------------------------------------------

POINTWISE(where_value, (B condition, N input, N other), select(condition, input, other))
POINTWISE(where_grad_input, (C g, B condition), select(condition, g, S(0)))
POINTWISE(where_grad_other, (C g, B condition), select(condition, S(0), g))
OP(where,
   "(Tensor|Scalar condition, Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = R"(input where condition is true, other elsewhere.

Example:
    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.where(x > 0, x, 0.0)
    tensor([0., 2.]))",
  .variants = function,
  .batch   = by_elements,
  .forward = [](const Tensor& condition, const Tensor& input, const Tensor& other) {
    CHECK(is_bool(condition.dtype()) || condition.dtype() == DType::uint8,
          "expected condition to be a boolean tensor, but got a tensor with dtype ",
          dtype_name(condition.dtype()), ". Compare it with something, as in x > 0.");
    return pointwise<where_value>(condition, input, other);
  },
  .saves   = saves<"condition">,
  .grads   = grads(no_grad<"condition">, d<"input">(formula<where_grad_input>),
                   d<"other">(formula<where_grad_other>)),
})
OP(where_method,
   "where.self(Tensor|Scalar input, Tensor|Scalar condition, Tensor|Scalar other) -> Tensor", {
  .doc     = "The tensor where condition is true, other elsewhere.",
  .variants = method,
  .forward = [](const Tensor& input, const Tensor& condition, const Tensor& other) {
    return where(condition, input, other);
  },
})

POINTWISE(masked_fill_value, (N input, B mask, N value), select(mask, value, input))
OP(masked_fill, "(Tensor input, Tensor mask, Tensor|Scalar value) -> Tensor", {
  .doc     = R"(The tensor with value, a number or a 0-d tensor, where mask is true.

Example:
    >>> torch.zeros(3).masked_fill(torch.tensor([True, False, True]), 2.0)
    tensor([2., 0., 2.]))",
  .batch   = [](const Batch& batch, const Tensor& input, const Tensor& mask, const Tensor& value) {
    int64_t rank = std::max(batch.rank("input"), batch.rank("mask"));
    Tensor to = batch.has("input") ? Batch::padded(input, rank) : input;
    Tensor at = batch.has("mask") ? Batch::padded(mask, rank) : mask;
    if (!batch.has("value")) return call<"masked_fill", Tensor>(to, at, value);
    CHECK(batch.rank("value") == 0,
          "only supports a 0-dimensional value tensor, but got tensor with ", batch.rank("value"),
          " dimension(s). Use torch.where(mask, value, input).");
    return where(at, Batch::padded(cast(value, input.dtype()), rank), to);
  },
  .forward = [](const Tensor& input, const Tensor& mask, const Tensor& value, const Tensor* into) {
    CHECK(is_bool(mask.dtype()), "only supports boolean masks, but got mask with dtype ",
          dtype_name(mask.dtype()), ". Use mask.bool().");
    CHECK(value.dim() == 0, "only supports a 0-dimensional value tensor, but got tensor with ",
          value.dim(), " dimension(s). Use torch.where(mask, value, input).");
    CHECK(is_complex(input.dtype()) || !is_complex(value.dtype()), "value cannot be converted to ",
          dtype_name(input.dtype()), " without dropping its imaginary part.");
    if (is_integral(input.dtype()) && value.device().is_cpu())
      scalar_tensor(item(value), input.dtype());  // refuses what does not fit
    Tensor row_major;
    if (!into && !input.is_contiguous()) {
      row_major = empty(broadcast_shapes(input.sizes(), mask.sizes()), input.dtype(),
                        input.device());
      into = &row_major;
    }
    return pointwise_into<masked_fill_value>(into, input, mask, to_dtype(value, input.dtype()));
  },
  .saves   = saves<"mask">,
  .grads   = grads(
      d<"input">([](const Tensor& g, const Tensor& mask) {
        return evaluate<where_grad_other>(g, mask);
      }),
      no_grad<"mask">,
      d<"value">([](const Tensor& g, const Tensor& mask) {
        return evaluate<where_grad_input>(g, mask);
      })),
})

// NaN counts as not positive.
POINTWISE(heaviside_value, (R input, R values),
          select(input == S(0), values, select(input > S(0), S(1), S(0))))
POINTWISE(heaviside_grad_values, (T g, T input), select(input == S(0), g, S(0)))
OP(heaviside, "(Tensor input, Tensor values) -> Tensor", {
  .doc     = "The step function: 0 below zero, 1 above, values at zero.",
  .dtypes  = real,
  .forward = formula<heaviside_value>,
  .saves   = saves<"input">,
  .grads   = grads(d<"input">(uses<>, [](const Tensor& g) { return zeros_like(g); }),
                   d<"values">(formula<heaviside_grad_values>)),
})

POINTWISE(copysign_value, (T input, T other), copysign(input, other))
POINTWISE(copysign_grad, (T g, T input, T result),
          select(input == S(0), S(0), g * (result / input)))
OP(copysign, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The magnitude of input with the sign of other, that of a zero too.",
  .dtypes  = real,
  .forward = formula<copysign_value>,
  .saves   = saves<"input", "result">,
  .grads   = grads(
      d<"input">(formula<copysign_grad>),
      d<"other">(uses<>, [](const Tensor& g) { return zeros_like(g); })),
})

POINTWISE(nextafter_value, (T input, T other), nextafter(input, other))
POINTWISE(nextafter_grad, (T g, T input, T other), select(input == other, S(0), g))
OP(nextafter, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The number of the dtype that is next to input in the direction of other.

Example:
    >>> torch.nextafter(torch.tensor([0.0, 1.0]), torch.tensor(2.0)) - torch.tensor([0.0, 1.0])
    tensor([1.4013e-45, 1.1921e-07]))",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    const Tensor* operands[] = {&input, &other};
    DType dtype = result_dtype(operands);
    if (!is_half(dtype)) return pointwise_into<nextafter_value>(into, input, other);
    Tensor next = next_half(to_dtype(input, dtype), to_dtype(other, dtype));
    if (!into) return next;
    copy_into(*into, next);
    return *into;
  },
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(formula<nextafter_grad>),
      d<"other">(uses<>, [](const Tensor& g) { return zeros_like(g); })),
})

// ---- logic --------------------------------------------------------------------------------------

POINTWISE(logical_and_value, (B input, B other), input & other)
OP(logical_and, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "Whether both elements are nonzero.",
  .forward = formula<logical_and_value>,
})

POINTWISE(logical_or_value, (B input, B other), input | other)
OP(logical_or, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "Whether at least one of both elements is nonzero.",
  .forward = formula<logical_or_value>,
})

POINTWISE(logical_xor_value, (B input, B other), input != other)
OP(logical_xor, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "Whether exactly one of both elements is nonzero.",
  .forward = formula<logical_xor_value>,
})

// ---- bits ---------------------------------------------------------------------------------------

POINTWISE(bitwise_and_value, (I input, I other), input & other)
OP(bitwise_and, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = "The bits that are set in both integers: input & other.",
  .dtypes  = integral_or_bool,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    return is_bool(input.dtype()) && is_bool(other.dtype())
               ? pointwise_into<logical_and_value>(into, input, other)
               : pointwise_into<bitwise_and_value>(into, input, other);
  },
})

POINTWISE(bitwise_or_value, (I input, I other), input | other)
OP(bitwise_or, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = "The bits that are set in one of both integers: input | other.",
  .dtypes  = integral_or_bool,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    return is_bool(input.dtype()) && is_bool(other.dtype())
               ? pointwise_into<logical_or_value>(into, input, other)
               : pointwise_into<bitwise_or_value>(into, input, other);
  },
})

POINTWISE(bitwise_xor_value, (I input, I other), input ^ other)
OP(bitwise_xor, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = "The bits that differ between both integers: input ^ other.",
  .dtypes  = integral_or_bool,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other, const Tensor* into) {
    return is_bool(input.dtype()) && is_bool(other.dtype())
               ? pointwise_into<logical_xor_value>(into, input, other)
               : pointwise_into<bitwise_xor_value>(into, input, other);
  },
})

POINTWISE(bitwise_left_shift_value, (I input, I other), left_shift(input, other))
OP(bitwise_left_shift, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The bits moved up by other places: input << other.

Example:
    >>> torch.bitwise_left_shift(torch.tensor([1, 2]), 3)
    tensor([ 8, 16]))",
  .dtypes  = integral_or_bool,
  .forward = formula<bitwise_left_shift_value>,
})

POINTWISE(bitwise_right_shift_value, (I input, I other), right_shift(input, other))
OP(bitwise_right_shift, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The bits moved down by other places, keeping the sign: input >> other.",
  .dtypes  = integral_or_bool,
  .forward = formula<bitwise_right_shift_value>,
})

}  // namespace rushlight
