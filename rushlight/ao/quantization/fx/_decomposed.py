"""torch.ops.quantized_decomposed: quantization of plain integer tensors, whose forms are arguments.

Graphs of networks that other programs quantize (torchao, ExecuTorch) consist of these operators.
Each is defined by PyTorch's schema and a function of this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.library import Library

__all__ = [
    "choose_qparams_per_token",
    "choose_qparams_per_token_asymmetric",
    "choose_qparams_symmetric_tensor",
    "choose_qparams_tensor",
    "dequantize_per_channel",
    "dequantize_per_channel_group",
    "dequantize_per_tensor",
    "dequantize_per_token",
    "quantize_per_channel",
    "quantize_per_channel_group",
    "quantize_per_tensor",
    "quantize_per_token",
    "quantized_decomposed_lib",
]

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")
_RANGE = "int quant_min, int quant_max, ScalarType dtype"
_SMALLEST = 1e-5  # range of a token


def _operator(schema: str) -> Callable[[Any], Any]:
    def define(function: Any) -> Any:
        quantized_decomposed_lib.define(schema)
        name = schema.partition("(")[0]
        quantized_decomposed_lib.impl(name, function, "CompositeExplicitAutograd")
        return function

    return define


def _check_range(quant_min: int, quant_max: int, dtype: Any) -> None:
    info = rl.iinfo(dtype)
    for name, bound, is_within in (
        ("quant_min", info.min, quant_min >= info.min),
        ("quant_max", info.max, quant_max <= info.max),
    ):
        value = quant_min if name == "quant_min" else quant_max
        if not is_within:
            side = "lower" if name == "quant_min" else "upper"
            raise AssertionError(
                f"{name} out of bounds for dtype, {name}_{side}_bound: {bound} {name}: {value}"
            )


def _floats(input: Tensor) -> Tensor:
    if input.dtype in (rl.float16, rl.bfloat16):
        return input.to(rl.float32)
    if input.dtype is not rl.float32:
        raise AssertionError(
            f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}"
        )
    return input


def _check_integers(input: Tensor, dtype: Any) -> None:
    if input.dtype is not dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got {input.dtype}")


@_operator(f"quantize_per_tensor(Tensor input, float scale, int zero_point, {_RANGE}) -> Tensor")
def quantize_per_tensor(
    input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: Any
) -> Tensor:
    """Returns round(input / scale) + zero_point within bounds, as integers of a dtype."""
    values = _floats(input)
    _check_range(quant_min, quant_max, dtype)
    values = rl.round(values * (1.0 / scale)) + zero_point
    return values.clamp(quant_min, quant_max).to(dtype)


@_operator(
    f"dequantize_per_tensor(Tensor input, float scale, int zero_point, {_RANGE}, *, "
    "ScalarType? out_dtype=None) -> Tensor"
)
def dequantize_per_tensor(
    input: Tensor,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Tensor:
    """Returns (input - zero_point) * scale in float32, or in another dtype."""
    _check_integers(input, dtype)
    return (input.to(out_dtype or rl.float32) - zero_point) * scale


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _by_tensors(function: Any) -> Any:
    """The overloads whose numbers are tensors of one element."""

    def call(input: Tensor, *form: Any, **kwargs: Any) -> Tensor:
        return function(input, *map(_number, form), **kwargs)

    return call


for _overload, _bounds in (("tensor", "int"), ("tensor2", "Tensor")):
    _form = (
        f"(Tensor input, Tensor scale, Tensor zero_point, {_bounds} quant_min, {_bounds} quant_max,"
        " ScalarType dtype"
    )
    _operator(f"quantize_per_tensor.{_overload}{_form}) -> Tensor")(
        _by_tensors(quantize_per_tensor)
    )
    _operator(
        f"dequantize_per_tensor.{_overload}{_form}, *, ScalarType? out_dtype=None) -> Tensor"
    )(_by_tensors(dequantize_per_tensor))


def _chosen(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any) -> Any:
    if quant_min >= quant_max:
        raise AssertionError(
            f"Expecting quant_min to be smaller than quant_max but found: quant_min: {quant_min} "
            f"quant_max: {quant_max}"
        )
    low, high = rl.aminmax(_floats(input))
    return low.clamp(max=0).double().reshape(1), high.clamp(min=0).double().reshape(1)


@_operator(
    "choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, "
    "ScalarType dtype) -> (Tensor, Tensor)"
)
def choose_qparams_tensor(
    input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> tuple[Tensor, Tensor]:
    """Returns the scale and zero point that suit the range of a tensor."""
    low, high = _chosen(input, quant_min, quant_max, eps, dtype)
    scale = ((high - low) / float(quant_max - quant_min)).clamp(min=eps)
    zero_point = quant_min - rl.round(low / scale).long()
    return scale, zero_point.clamp(quant_min, quant_max)


@_operator(
    "choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, "
    "ScalarType dtype) -> (Tensor, Tensor)"
)
def choose_qparams_symmetric_tensor(
    input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> tuple[Tensor, Tensor]:
    """Returns the scale and zero point, the middle, that suit the largest number of a tensor."""
    low, high = _chosen(input, quant_min, quant_max, eps, dtype)
    scale = (rl.maximum(-low, high) / ((quant_max - quant_min) / 2)).clamp(min=eps)
    return scale, rl.full_like(scale, 128 if dtype is rl.uint8 else 0).long()


def _along(form: Tensor, axis: int, dims: int) -> Tensor:
    return form.view([-1 if d == axis % dims else 1 for d in range(dims)])


@_operator(
    f"quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, {_RANGE}) "
    "-> Tensor"
)
def quantize_per_channel(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
) -> Tensor:
    """quantize_per_tensor with a scale and a zero point for each place along an axis."""
    values = _floats(input)
    _check_range(quant_min, quant_max, dtype)
    scales, zero_points = (_along(part, axis, input.dim()) for part in (scales, zero_points))
    values = rl.round(values * (1.0 / scales)) + zero_points
    return values.clamp(quant_min, quant_max).to(dtype)


@_operator(
    "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, "
    f"{_RANGE}, *, ScalarType? out_dtype=None) -> Tensor"
)
def dequantize_per_channel(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Tensor:
    """dequantize_per_tensor with a scale and a zero point for each place along an axis."""
    _check_integers(input, dtype)
    values = input.to(out_dtype or rl.float32)
    if zero_points is not None:
        values = values - _along(zero_points, axis, input.dim())
    return (values * _along(scales, axis, input.dim())).to(values.dtype)


@_operator("choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """Returns scales that suit the largest number of each row along the last dim, and zeros."""
    largest = input.abs().amax(dim=-1, keepdim=True)
    if largest.dtype is rl.float16:
        largest = largest.float()
    if dtype is not rl.int8:
        raise Exception(f"unsupported dtype in choose_qparams_per_token: {dtype}")
    scales = largest.clamp(min=_SMALLEST) / 127
    return scales, rl.zeros_like(scales)


@_operator(
    "choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)"
)
@_operator(
    "_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)"
)
def choose_qparams_per_token_asymmetric(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """Returns the scales and zero points of int8 that suit each row along the last dim."""
    low = input.amin(dim=-1, keepdim=True).clamp(max=0)
    high = input.amax(dim=-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255.0).clamp(min=rl.finfo(rl.float32).eps)
    from_low, from_high = low / scale, high / scale
    # The end that rounds less decides.
    zero_point = rl.where(
        (-128 + from_low) + (127 + from_high) > 0, -128 - from_low, 127 - from_high
    )
    return scale.to(rl.float64), zero_point.clamp(-128, 127).round().to(rl.int64)


def _per_token_quant_qparam_dim_check(input: Tensor, scales: Tensor, zero_points: Tensor) -> None:
    """Checks that each token, which is a row along the last dim, has a scale and a zero point.

    Raises:
        AssertionError: if it has not.
    """
    tokens = math.prod(input.shape[:-1])
    for name, numbers in (("scales", scales), ("zero_points", zero_points)):
        if numbers.numel() != tokens:
            raise AssertionError(
                f"num_tokens: {tokens} {name}: {tuple(numbers.shape)}. Give one for each token."
            )


@_operator(
    f"quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, {_RANGE}) -> Tensor"
)
def quantize_per_token(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: Any,
) -> Tensor:
    """Returns integers by a scale and a zero point for each row along the last dim."""
    _check_range(quant_min, quant_max, dtype)
    _per_token_quant_qparam_dim_check(input, scales, zero_points)
    values = (input * (1.0 / scales) + zero_points).round()
    return values.clamp(quant_min, quant_max).to(dtype)


@_operator(
    f"dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, {_RANGE}, "
    "ScalarType output_dtype) -> Tensor"
)
def dequantize_per_token(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    output_dtype: Any = rl.float32,
) -> Tensor:
    """Returns what integers by a scale and a zero point for each row stand for."""
    values = (input - zero_points) * scales
    return values.to(output_dtype)


def _grouped(input: Tensor, scales: Tensor, group_size: int) -> Tensor:
    if group_size <= 1 or input.shape[-1] % group_size or input.dim() != 2:
        raise AssertionError(
            f"input {tuple(input.shape)} must be a matrix whose rows are groups of {group_size}, "
            "which is more than 1"
        )
    return input.reshape(-1, group_size)


@_operator(
    f"quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, {_RANGE}, "
    "int group_size) -> Tensor"
)
def quantize_per_channel_group(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    group_size: int = 128,
) -> Tensor:
    """Returns integers by a scale and a zero point for each group of numbers in a row."""
    values = _grouped(input, scales, group_size)
    scales, zero_points = scales.reshape(-1, 1), zero_points.reshape(-1, 1)
    values = (values * (1.0 / scales) + zero_points).round()
    return values.clamp(quant_min, quant_max).to(dtype).reshape_as(input)


@_operator(
    "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, "
    f"{_RANGE}, int group_size, ScalarType output_dtype) -> Tensor"
)
def dequantize_per_channel_group(
    w_int8: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    group_size: int = 128,
    output_dtype: Any = rl.float32,
) -> Tensor:
    """Returns what integers by a scale and a zero point for each group stand for."""
    values = _grouped(w_int8, scales, group_size)
    if zero_points is not None:
        values = values - zero_points.reshape(-1, 1)
    return (values * scales.reshape(-1, 1)).reshape_as(w_int8).to(output_dtype)


@_operator("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
def _convert_element_type(input: Tensor, dtype: Any) -> Tensor:
    return input.to(dtype, copy=True)


quantized_decomposed_lib.define(
    "fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, "
    "int quant_min, int quant_max) -> Tensor"
)


def _fake_quant_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    form = scales.float(), zero_points.to(rl.int32), axis, quant_min, quant_max
    return rl.fake_quantize_per_channel_affine(input, *form)


quantized_decomposed_lib.impl(  # recorded, as its op has the gradient
    "fake_quant_per_channel", _fake_quant_per_channel, "CompositeImplicitAutograd"
)
