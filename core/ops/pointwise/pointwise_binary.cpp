// Owns arithmetic, logic and bit operations on two or three tensors, any of which but the first may
// be a Python number. Comparisons are in compare.cpp, choices in pointwise_choice.cpp.
#include "core/ops/op.h"
#ifndef RUSHLIGHT_ISA
#include "core/ops/operands.h"
#endif

namespace rushlight {

// ---- sums and products --------------------------------------------------------------------------

#ifndef RUSHLIGHT_ISA
// Arguments in an order that PyTorch had first, and still takes.
static void warn_of_order(const char* op, const char* factor) {
  if (!warn_user) return;
  warn_user(std::string("This overload of ") + op + " is deprecated: pass " + factor +
            " by name, after the tensors.");
}
#endif

// tensor/fusion_group.cpp joins sums, differences and products of two numbers; it knows them by the
// texts of add_value, sub_value, mul_value and the gradients of mul.
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

OP(add_scaled, "add.scaled(Tensor input, Scalar alpha, Tensor other) -> Tensor", {
  .doc     = "The same in the order of early versions.",
  .variants = function | method | inplace,
  .forward = [](const Tensor& input, Scalar alpha, const Tensor& other) {
    warn_of_order("add", "alpha");
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
    warn_of_order("sub", "alpha");
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
    warn_of_order("addcmul", "value");
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
    warn_of_order("addcdiv", "value");
    return call<"addcdiv", Tensor>(input, tensor1, tensor2, value);
  },
})

// Both forms are exact at their end of the range. A weight that is a Python number chooses for all.
POINTWISE(lerp_value, (C input, C end, C weight),
          select(real(weight * conj(weight)) < real(S(0.25)), input + weight * (end - input),
                 end - (end - input) * (S(1) - weight)))
POINTWISE(lerp_near_value, (C input, C end, S weight), input + weight * (end - input))
POINTWISE(lerp_far_value, (C input, C end, S weight), end - (end - input) * (S(1) - weight))
POINTWISE(lerp_grad_input, (C g, C weight), g - g * conj(weight))
POINTWISE(lerp_grad_end, (C g, C weight), g * conj(weight))
POINTWISE(lerp_grad_weight, (C g, C input, C end), g * conj(end - input))
OP(lerp, "(Tensor|Scalar input, Tensor|Scalar end, Tensor|Scalar weight) -> Tensor", {
  .doc     = R"(Between two tensors: input + weight * (end - input).

Example:
    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([10.0, 20.0]), 0.25)
    tensor([ 2.5000, 12.5000]))",
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& end, const Tensor& weight, const Tensor* into) {
    if (!weight.impl()->wrapped_number || is_complex(weight.dtype()) ||
        !is_floating(input.dtype()) || input.dtype() != end.dtype())
      return pointwise_into<lerp_value>(into, input, end, weight);
    Scalar number = item(weight);
    return std::abs(number.to<double>()) < 0.5
               ? pointwise_into<lerp_near_value>(into, input, end, number)
               : pointwise_into<lerp_far_value>(into, input, end, number);
  },
  .saves   = saves<"input", "end", "weight">,
  .grads   = grads(d<"input">(formula<lerp_grad_input>), d<"end">(formula<lerp_grad_end>),
                   d<"weight">(formula<lerp_grad_weight>)),
})

// ---- quotients and remainders -------------------------------------------------------------------

POINTWISE(div_value, (C input, C other), input / other)
POINTWISE(div_grad_input, (C g, C other), g / conj(other))
POINTWISE(div_grad_other, (C g, C input, C other), -g * conj(input / other / other))
OP(div, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = R"(input / other; integers give floats.

Example:
    >>> torch.div(torch.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000]))",
  .aliases = "divide true_divide",
  .sparse  = sparse_div,
  .forward = formula<div_value>,
  .saves   = saves<"input", "other">,
  .grads   = grads(d<"input">(formula<div_grad_input>), d<"other">(formula<div_grad_other>)),
})

#ifndef RUSHLIGHT_ISA
// A sparse tensor divided by a number and rounded, by an op. Entries at one place count together.
template <FixedString op>
Tensor divide_entries(const Tensor& input, const Tensor& other) {
  CHECK(input.is_sparse() && !other.is_sparse() && other.dim() == 0, ErrorKind::kNotImplemented,
        "a sparse tensor can be divided by a number or a 0-d tensor only. Use to_dense().");
  Tensor entries = coalesced(input);
  return sparse_like(call<op, Tensor>(sparse_values(entries), other), entries);
}
#endif

POINTWISE(floor_divide_value, (R input, R other), floor_divide(input, other))
OP(floor_divide, "(Tensor|Scalar input, Tensor|Scalar other) -> Tensor", {
  .doc     = R"(input / other, rounded down: Python's //.

Example:
    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4]))",
  .dtypes  = real,
  .sparse  = divide_entries<"floor_divide">,
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
  .sparse  = divide_entries<"_trunc_divide">,
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
  .sparse  = by_forward,
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
    return pointwise_into<remainder_value>(into, input, rounded_next_to(input, other));
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
    return pointwise_into<fmod_value>(into, input, rounded_next_to(input, other));
  },
  .saves   = saves<"input", "other">,
  .grads   = grads(
      d<"input">(uses<>, [](const Tensor& g) { return g; }),
      d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
        return -g * trunc_divide(input, other);
      })),
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
