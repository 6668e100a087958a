"""What ops do with quantized tensors: the table behind QuantizedTensor.__torch_function__.

An op that is not in the table raises an error that names dequantize(). There are three kinds: ops
that only move integers, ops whose integers follow from the input's integers, and ops that compute
in floats and come back in the form of their input, as PyTorch's quantized kernels do.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import _C, Tensor
from rushlight._overridable import function_of
from rushlight._quantized import (
    PerTensor,
    QuantizedTensor,
    integers_of,
    parts_of_form,
    wrap,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Views and copies, of tensors with one scale.
_MOVES = frozenset(
    """
    T __getitem__ as_strided broadcast_to channel_shuffle chunk contiguous expand expand_as
    flatten flip index_fill_ index_select mT masked_select moveaxis movedim narrow permute
    pixel_shuffle pixel_unshuffle ravel repeat repeat_interleave reshape reshape_as roll select
    split split_with_sizes squeeze squeeze_ swapaxes swapdims t tensor_split tile transpose
    transpose_ unbind unflatten unfold unsqueeze unsqueeze_ view view_as
    """.split()  # noqa: SIM905
)
# Copies that keep every element in its place, of any tensor.
_COPIES = frozenset(("_to", "clone", "contiguous", "detach", "detach_", "cpu", "alias"))
# Larger floats have larger integers.
_MONOTONE = frozenset(
    """
    _max_pool1d _max_pool2d _max_pool3d adaptive_max_pool1d adaptive_max_pool2d amax amin max
    max_pool1d max_pool2d max_pool3d min sort topk
    """.split()  # noqa: SIM905
)
# Computed in floats, rounded to the input's form.
_BY_FLOATS = frozenset(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d
    avg_pool3d celu channel_shuffle clamp clamp_ cumsum dropout elu gelu grid_sample hardsigmoid
    hardswish hardtanh hardtanh_ interpolate leaky_relu leaky_relu_ mean pad prelu relu6 relu6_
    std threshold upsample upsample_bilinear upsample_nearest
    """.split()  # noqa: SIM905
)
# Results have the form that suits the range of the function.
_FIXED = {
    "sigmoid": PerTensor(1 / 256, 0),
    "sigmoid_": PerTensor(1 / 256, 0),
    "hardsigmoid": PerTensor(1 / 256, 0),
    "softmax": PerTensor(1 / 256, 0),
    "tanh": PerTensor(2 / 256, 128),
    "tanh_": PerTensor(2 / 256, 128),
}
# Functions of the module that are methods too.
_METHODS = frozenset(
    """
    dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
    q_zero_point
    """.split()  # noqa: SIM905
)
# Functions in Python whose own code takes quantized tensors.
_THEIR_OWN = frozenset(
    """
    quantized_batch_norm quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
    """.split()  # noqa: SIM905
)
# Results that are not quantized.
_COMPARISONS = frozenset(
    ("eq", "ne", "lt", "le", "gt", "ge", "equal", "allclose", "isclose", "argsort")
)
_TYPE_CHECKS = frozenset(
    ("is_floating_point", "is_complex", "is_signed", "is_tensor", "is_nonzero")
)


def run(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Runs a function on quantized tensors, or raises NotImplementedError."""
    func = function_of(func)
    name = getattr(func, "__name__", "")
    first = args[0] if args else kwargs.get("input")
    if name in _METHODS and isinstance(first, QuantizedTensor):
        return getattr(first, name)()
    if name in _THEIR_OWN:
        return func.__wrapped__(*args, **kwargs)  # pyright: ignore[reportFunctionMemberAccess]
    if name in _SPECIAL:
        return _SPECIAL[name](*args, **kwargs)
    if isinstance(first, QuantizedTensor):
        form = first.form
        if name in _TYPE_CHECKS:
            return False
        if name in _COPIES or (name in _MOVES and isinstance(form, PerTensor)):
            return _wrap_all(_on(func, integers_of, args, kwargs), form)
        if isinstance(form, PerTensor):
            if name in _MONOTONE and not any(isinstance(x, Tensor) for x in args[1:]):
                return _wrap_all(_on(func, integers_of, args, kwargs), form)
            if name in _FIXED or name in _BY_FLOATS:
                target = _FIXED.get(name, form)
                return _quantized(_on(func, Tensor.dequantize, args, kwargs), target, first)
        if name in _COMPARISONS:
            return _on(func, Tensor.dequantize, args, kwargs)
    raise NotImplementedError(
        f"{name}: not implemented for quantized tensors. Call dequantize() on them first, or use a "
        "layer of torch.ao.nn.quantized."
    )


def _on(func: Any, convert: Callable[[Any], Tensor], args: Any, kwargs: dict[str, Any]) -> Any:
    """func with each quantized argument replaced by what convert makes of it."""

    def change(value: Any) -> Any:
        if isinstance(value, QuantizedTensor):
            return convert(value) if convert is integers_of else value.dequantize()
        if isinstance(value, list | tuple):
            return type(value)(change(item) for item in value)
        return value

    return func(*change(args), **{key: change(value) for key, value in kwargs.items()})


def _wrap_all(result: Any, form: Any) -> Any:
    """Makes integers that an op returned quantized tensors; indices beside them stay."""
    if isinstance(result, Tensor):
        return wrap(result, form)
    if len({part.dtype for part in result}) == 1:
        return type(result)(wrap(part, form) for part in result)
    return type(result)((wrap(result[0], form), *result[1:]))


def _quantized(values: Tensor, form: PerTensor, like: QuantizedTensor) -> QuantizedTensor:
    return wrap(form.quantize(values, like.dtype.integers), form)


def _relu(input: QuantizedTensor, inplace: bool = False) -> QuantizedTensor:
    form = input.form
    if not isinstance(form, PerTensor):
        raise NotImplementedError("relu: needs a tensor that is quantized per tensor.")
    integers = integers_of(input)
    if inplace:
        integers.clamp_(min=form.zero_point)
        return input
    return wrap(integers.clamp(min=form.zero_point), form)


def _cat(tensors: Any, dim: int = 0, **kwargs: Any) -> QuantizedTensor:
    """Joins tensors in the form of the first."""
    first = tensors[0]
    form = getattr(first, "form", None)
    if not isinstance(form, PerTensor) or any(not t.is_quantized for t in tensors):
        raise NotImplementedError("cat: needs tensors that are all quantized per tensor.")
    return _join(tensors, dim, form, first.dtype.integers)


def cat(tensors: Any, dim: int, scale: float, zero_point: int) -> QuantizedTensor:
    """Returns quantized tensors one after the other, in a form."""
    return _join(tensors, dim, PerTensor(scale, zero_point), tensors[0].dtype.integers)


def _join(tensors: Any, dim: int, form: PerTensor, dtype: rl.dtype) -> QuantizedTensor:
    def integers(t: QuantizedTensor) -> Tensor:
        same = isinstance(t.form, PerTensor) and parts_of_form(t.form) == parts_of_form(form)
        if same and t.dtype.integers is dtype:
            return integers_of(t)
        return form.quantize(t.dequantize(), dtype)

    return wrap(rl.cat([integers(t) for t in tensors], dim), form)


def add(
    input: QuantizedTensor,
    other: QuantizedTensor,
    scale: float,
    zero_point: int,
    relu: bool = False,
) -> QuantizedTensor:
    """Returns the sum of two quantized tensors, or its positive part, in a form."""
    form = PerTensor(scale, zero_point)
    a, b = input.form, other.form
    if not (isinstance(a, PerTensor) and isinstance(b, PerTensor)) or input.shape != other.shape:
        values = input.dequantize() + other.dequantize()
        return _quantized(values.relu() if relu else values, form, input)
    integers = _C._quantized_add(
        integers_of(input),
        a.scale,
        a.zero_point,
        integers_of(other),
        b.scale,
        b.zero_point,
        scale,
        zero_point,
        relu,
    )
    return wrap(integers, form)


def mul(
    input: QuantizedTensor,
    other: QuantizedTensor,
    scale: float,
    zero_point: int,
    relu: bool = False,
) -> QuantizedTensor:
    """Returns the product of two quantized tensors, or its positive part, in a form."""
    values = input.dequantize() * other.dequantize()
    return _quantized(values.relu() if relu else values, PerTensor(scale, zero_point), input)


def matmul(
    input: QuantizedTensor, other: QuantizedTensor, scale: float, zero_point: int
) -> QuantizedTensor:
    """Returns the matrix product of two quantized tensors in a form."""
    values = input.dequantize() @ other.dequantize()
    return _quantized(values, PerTensor(scale, zero_point), input)


def add_scalar(input: QuantizedTensor, other: float) -> QuantizedTensor:
    """Returns a quantized tensor plus a number, in the form whose range has moved by it."""
    form, dtype = input._per_tensor("add_scalar"), input.dtype
    scale, zero_point = form.scale, form.zero_point
    steps = round(other / scale)
    if dtype.min <= zero_point - steps <= dtype.max:
        return wrap(integers_of(input).clone(), PerTensor(scale, zero_point - steps))
    bound = dtype.min if zero_point - steps < dtype.min else dtype.max
    low, high = dtype.min - (zero_point - steps), dtype.max - (zero_point - steps)
    wider = (high if bound == dtype.min else -low) / (dtype.max - dtype.min) * scale
    return _quantized(input.dequantize() + other, PerTensor(wider, bound), input)


def mul_scalar(input: QuantizedTensor, other: float) -> QuantizedTensor:
    """Returns a quantized tensor times a number, in the form whose range is that much wider."""
    form, dtype = input._per_tensor("mul_scalar"), input.dtype
    integers = integers_of(input)
    if other > 0:
        return wrap(integers.clone(), PerTensor(form.scale * other, form.zero_point))
    if other == 0:
        return wrap(rl.zeros_like(integers), PerTensor(1.0, 0))
    turned = (dtype.max + dtype.min - integers.int()).to(integers.dtype)
    return wrap(turned, PerTensor(form.scale * -other, dtype.max + dtype.min - form.zero_point))


def _as_integers(name: str, target: QuantizedTensor, value: Any) -> Tensor:
    """What is written into a quantized tensor, which rounds numbers and floats to its form."""
    form = target._per_tensor(name)
    if isinstance(value, QuantizedTensor):
        value = value.dequantize()
    return form.quantize(rl.as_tensor(value, dtype=rl.float32), target.dtype.integers)


def _fill(input: QuantizedTensor, value: Any) -> QuantizedTensor:
    integers_of(input).fill_(_as_integers("fill_", input, value))
    return input


def _masked_fill(input: QuantizedTensor, mask: Tensor, value: Any) -> QuantizedTensor:
    integers_of(input).masked_fill_(mask, _as_integers("masked_fill_", input, value))
    return input


def _index_put(input: QuantizedTensor, indices: Any, values: Any) -> QuantizedTensor:
    integers_of(input).index_put_(indices, _as_integers("index_put_", input, values))
    return input


def _set_item(input: QuantizedTensor, index: Any, value: Any) -> None:
    integers_of(input)[index] = _as_integers("__setitem__", input, value)


def _empty_like(input: QuantizedTensor, **options: Any) -> QuantizedTensor:
    return wrap(rl.empty_like(integers_of(input), **options), input.form)


def _cast(input: QuantizedTensor, dtype: Any, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        f"to: a quantized tensor does not become {dtype}. Use dequantize().to(dtype)."
    )


_SPECIAL: dict[str, Callable[..., Any]] = {
    "relu": _relu,
    "relu_": lambda input: _relu(input, True),
    "cat": _cat,
    "concat": _cat,
    "concatenate": _cat,
    "stack": lambda tensors, dim=0: _cat([t.unsqueeze(dim) for t in tensors], dim),
    "fill_": _fill,
    "masked_fill": lambda input, mask, value: _masked_fill(input.clone(), mask, value),
    "masked_fill_": _masked_fill,
    "index_put_": _index_put,
    "__setitem__": _set_item,
    "empty_like": _empty_like,
    "_cast": _cast,
}
