"""Functions of quantized tensors, for networks that are written without layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._quantized import integers_of, wrap
from rushlight.ao.nn.quantized._packed import PackedWeight
from rushlight.nn import functional as F
from rushlight.nn.functional import (
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool2d,
    avg_pool3d,
    hardtanh,
    interpolate,
    max_pool1d,
    max_pool2d,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from rushlight.nn.modules.utils import _ntuple

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool2d",
    "avg_pool3d",
    "celu",
    "clamp",
    "conv1d",
    "conv2d",
    "conv3d",
    "elu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "interpolate",
    "leaky_relu",
    "linear",
    "max_pool1d",
    "max_pool2d",
    "threshold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:
    """input @ weight.T + bias, of a quint8 input and a qint8 weight.

    Args:
        input: (*, in_features).
        weight: (out_features, in_features).
        bias: (out_features,) in float32.
        scale: of the result; the input's unless given.
        zero_point: of the result; the input's unless given.
    """
    form = _form(input, scale, zero_point)
    return PackedWeight(weight, bias)(input, *form)


def _form(input: Tensor, scale: float | None, zero_point: int | None) -> tuple[float, int]:
    return (
        input.q_scale() if scale is None else scale,
        input.q_zero_point() if zero_point is None else zero_point,
    )


def _conv(
    dims: int,
    input: Tensor,
    weight: Any,
    bias: Any,
    window: Sequence[Any],
    groups: int,
    padding_mode: str,
    scale: float,
    zero_point: int,
    dtype: Any,
) -> Tensor:
    name = f"conv{dims}d"
    if padding_mode != "zeros":
        raise NotImplementedError(f"{name}: Only zero-padding is supported!")
    if dtype is not None and dtype is not rl.quint8:
        raise NotImplementedError(f"{name}: dtype must be torch.quint8, but is {dtype}.")
    if input.dim() != dims + 2:
        raise ValueError(f"{name}: Input shape must be `(N, C, ...)` of {dims + 2} dims!")
    lists = [list(_ntuple(dims)(n)) for n in window]
    if dims == 1:  # sequences are images of one line
        input, weight = input.unsqueeze(2), wrap(integers_of(weight).unsqueeze(2), weight.form)
        lists = [[1, *lists[0]], [0, *lists[1]], [1, *lists[2]]]
    stride, padding, dilation = lists
    layer = PackedWeight(weight, bias, stride, padding, dilation, groups, name)
    result = layer(input, scale, zero_point)
    return result.squeeze(2) if dims == 1 else result


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: Any = None,
) -> Tensor:
    """torch.nn.functional.conv1d of a quint8 input and a qint8 weight."""
    window = (stride, padding, dilation)
    return _conv(1, input, weight, bias, window, groups, padding_mode, scale, zero_point, dtype)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: Any = None,
) -> Tensor:
    """torch.nn.functional.conv2d of a quint8 input and a qint8 weight."""
    window = (stride, padding, dilation)
    return _conv(2, input, weight, bias, window, groups, padding_mode, scale, zero_point, dtype)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    scale: float = 1.0,
    zero_point: int = 0,
    dtype: Any = None,
) -> Tensor:
    """torch.nn.functional.conv3d of a quint8 input and a qint8 weight."""
    window = (stride, padding, dilation)
    return _conv(3, input, weight, bias, window, groups, padding_mode, scale, zero_point, dtype)


def _rounded(values: Tensor, input: Tensor, scale: float, zero_point: int) -> Tensor:
    return rl.quantize_per_tensor(values, scale, zero_point, input.dtype)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """torch.nn.functional.hardswish, its result in a form of its own."""
    return _rounded(F.hardswish(input.dequantize()), input, scale, zero_point)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """torch.nn.functional.elu, its result in a form of its own."""
    return _rounded(F.elu(input.dequantize(), alpha), input, scale, zero_point)


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """torch.nn.functional.celu, its result in a form of its own."""
    return _rounded(F.celu(input.dequantize(), alpha), input, scale, zero_point)


def leaky_relu(
    input: Tensor,
    negative_slope: float = 0.01,
    inplace: bool = False,
    scale: float | None = None,
    zero_point: int | None = None,
) -> Tensor:
    """torch.nn.functional.leaky_relu, in the input's form unless another is given."""
    form = _form(input, scale, zero_point)
    return _rounded(F.leaky_relu(input.dequantize(), negative_slope), input, *form)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """torch.nn.functional.hardsigmoid, with scale 1 / 256."""
    return F.hardsigmoid(input)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """torch.clamp, in the input's form."""
    return rl.clamp(input, min_, max_)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """torch.nn.functional.threshold, in the input's form."""
    return F.threshold(input, threshold, value)
