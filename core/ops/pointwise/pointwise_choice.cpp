// Owns extrema and selection: the ops that choose between tensors, any of which but the first may
// be a Python number.
#include "core/ops/op.h"

namespace rushlight {

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
          select(input == other, g * S(0.5), select((input > other) | isnan(other), g, S(0))))
POINTWISE(fmax_grad_other, (T g, T input, T other),
          select(input == other, g * S(0.5), select((input > other) | isnan(other), S(0), g)))
OP(fmax, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The larger of two elements; if one is NaN, the other.",
  .dtypes  = real,
  .forward = formula<fmax_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<fmax_grad_input>), d<"other">(formula<fmax_grad_other>)),
})

POINTWISE(fmin_value, (R input, R other), fmin(input, other))
POINTWISE(fmin_grad_input, (T g, T input, T other),
          select(input == other, g * S(0.5), select((input < other) | isnan(other), g, S(0))))
POINTWISE(fmin_grad_other, (T g, T input, T other),
          select(input == other, g * S(0.5), select((input < other) | isnan(other), S(0), g)))
OP(fmin, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = "The smaller of two elements; if one is NaN, the other.",
  .dtypes  = real,
  .forward = formula<fmin_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<fmin_grad_input>), d<"other">(formula<fmin_grad_other>)),
})

// A bound that is a number decides where an element equals it, so the gradient is zero there; with
// one that is a tensor it is shared, as by the larger and the smaller of two elements.
POINTWISE(above_grad, (T g, T input, T min), select(input > min, g, S(0)))
POINTWISE(below_grad, (T g, T input, T max), select(input < max, g, S(0)))
OP(clamp_min, "(Tensor|Scalar input, Tensor|Scalar min) -> Tensor", {
  .doc     = "Raises elements below min to it.",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& min, const Tensor* into) {
    return pointwise_into<maximum_value>(into, input, min);
  },
  .saves   = saves<"input", "min">,
  .grads   = grads(
      d<"input">([](const Tensor& g, const Tensor& input, const Tensor& min) {
        return min.impl()->wrapped_number ? evaluate<above_grad>(g, input, min)
                                          : evaluate<larger_grad>(g, input, min);
      }),
      d<"min">([](const Tensor& g, const Tensor& input, const Tensor& min) {
        return evaluate<larger_grad>(g, min, input);
      })),
})

OP(clamp_max, "(Tensor|Scalar input, Tensor|Scalar max) -> Tensor", {
  .doc     = "Lowers elements above max to it.",
  .dtypes  = real,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& max, const Tensor* into) {
    return pointwise_into<minimum_value>(into, input, max);
  },
  .saves   = saves<"input", "max">,
  .grads   = grads(
      d<"input">([](const Tensor& g, const Tensor& input, const Tensor& max) {
        return max.impl()->wrapped_number ? evaluate<below_grad>(g, input, max)
                                          : evaluate<smaller_grad>(g, input, max);
      }),
      d<"max">([](const Tensor& g, const Tensor& input, const Tensor& max) {
        return evaluate<smaller_grad>(g, max, input);
      })),
})

// The bounds have a gradient where they decide; max decides where min is above it.
POINTWISE(clamp_value, (R input, R min, R max), clamp(input, min, max))
POINTWISE(between_grad, (T g, T input, T min, T max),
          select((input > min) & (input < max), g, S(0)))
POINTWISE(clamp_grad_input, (T g, T input, T min, T max),
          select((input < min) | (input > max), S(0),
                 select((min < max) & ((input == min) | (input == max)), g * S(0.5), g)))
POINTWISE(clamp_grad_min, (T g, T input, T min, T max),
          select((input == min) & (min < max), g * S(0.5),
                 select((input < min) & (min <= max), g, S(0))))
POINTWISE(clamp_grad_max, (T g, T input, T min, T max),
          select((input == max) & (min < max), g * S(0.5),
                 select((max < min) | ((input > max) & (min <= max)), g, S(0))))
OP(clamp, "(Tensor input, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor", {
  .doc     = R"(Brings every element into [min, max]; each bound is a number, a tensor or absent.

Where an element equals a bound, its gradient is zero if the bound is a number, and half of it goes
to a bound that is a tensor.

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
        bool are_numbers = (!min.defined() || min.impl()->wrapped_number) &&
                           (!max.defined() || max.impl()->wrapped_number);
        if (!max.defined())
          return are_numbers ? evaluate<above_grad>(g, input, min)
                             : evaluate<larger_grad>(g, input, min);
        if (!min.defined())
          return are_numbers ? evaluate<below_grad>(g, input, max)
                             : evaluate<smaller_grad>(g, input, max);
        return are_numbers ? evaluate<between_grad>(g, input, min, max)
                           : evaluate<clamp_grad_input>(g, input, min, max);
      }),
      d<"min">([](const Tensor& g, const Tensor& input, const Tensor& min, const Tensor& max) {
        return max.defined() ? evaluate<clamp_grad_min>(g, input, min, max)
                             : evaluate<larger_grad>(g, min, input);
      }),
      d<"max">([](const Tensor& g, const Tensor& input, const Tensor& min, const Tensor& max) {
        return min.defined() ? evaluate<clamp_grad_max>(g, input, min, max)
                             : evaluate<smaller_grad>(g, max, input);
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
    if (condition.dtype() == DType::uint8 && warn_user) [[unlikely]]
      warn_user("where received a uint8 condition tensor. This behavior is deprecated: use a "
                "boolean condition instead.");
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
OP(_fill_where_, "(Tensor! input, Tensor mask, Tensor value) -> Tensor", {
  .home    = "core",
  .doc     = "Writes a 0-d value of the same dtype where mask, which broadcasts, is true.",
  .fills   = true,
  .forward = [](const Tensor& input, const Tensor& mask, const Tensor& value) {
    return pointwise_into<masked_fill_value>(&input, input, mask, value);
  },
})
OP(masked_fill, "(Tensor input, Tensor mask, Tensor|Scalar value) -> Tensor", {
  .doc     = R"(The tensor with value, a number or a 0-d tensor, where mask is true.

Example:
    >>> torch.zeros(3).masked_fill(torch.tensor([True, False, True]), 2.0)
    tensor([2., 0., 2.]))",
  .fills   = true,
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
    if (into && has_internal_overlap(*into)) {
      return call<"_masked_fill_repeats_", Tensor>(*into, mask, to_dtype(value, input.dtype()));
    }
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

}  // namespace rushlight
