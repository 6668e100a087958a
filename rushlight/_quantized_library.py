"""torch.ops.quantized: the kernels of quantized tensors under PyTorch's names.

They take and give quantized tensors; scale and zero_point are those of the result. The layers of
torch.ao.nn.quantized and graphs of convert_fx do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, _quantized_ops
from rushlight.ao.nn.quantized._packed import PackedWeight
from rushlight.nn import functional as F


def _sum_or_product(function: Any, by_number: Any, relu: bool) -> Callable[..., Tensor]:
    def call(qa: Any, qb: Any, scale: Any = None, zero_point: Any = None) -> Tensor:
        if isinstance(qb, Tensor):
            return function(qa, qb, float(scale), int(zero_point), relu=relu)
        result = by_number(qa, qb)
        return result.relu() if relu else result

    return call


def matmul(qa: Any, qb: Any, scale: Any, zero_point: Any) -> Tensor:
    """The matrix product of two quantized tensors."""
    return _quantized_ops.matmul(qa, qb, float(scale), int(zero_point))


def cat(qx: Sequence[Any], dim: int, scale: Any = None, zero_point: Any = None) -> Tensor:
    """Quantized tensors one after the other; in the form of the first unless another is given."""
    if scale is None:
        return rl.cat(list(qx), dim)
    return _quantized_ops.cat(qx, dim, float(scale), int(zero_point))


def _by_floats(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(input: Any, *args: Any, output_scale: Any, output_zero_point: Any, **kw: Any) -> Any:
        kw = {name: value for name, value in kw.items() if name != "inplace"}
        values = function(input.dequantize(), *args, **kw)
        form = float(output_scale), int(output_zero_point)
        return rl.quantize_per_tensor(values, *form, input.dtype)

    return call


def _product(relu: bool) -> Callable[..., Tensor]:
    def call(qx: Any, w_prepack: PackedWeight, output_scale: Any, output_zero_point: Any) -> Tensor:
        return w_prepack(qx, float(output_scale), int(output_zero_point), relu)

    return call


def linear_prepack(W: Any, B: Tensor | None = None) -> PackedWeight:
    """A qint8 weight and a bias for linear."""
    return PackedWeight(W, B)


def _dynamic(relu: bool) -> Callable[..., Tensor]:
    def call(X: Tensor, W_prepack: PackedWeight, reduce_range: bool = False) -> Tensor:
        return W_prepack.dynamic(X, reduce_range, relu)

    return call


def _conv_prepack(dims: int) -> Callable[..., PackedWeight]:
    def call(
        weight: Any,
        bias: Tensor | None,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
    ) -> PackedWeight:
        return PackedWeight(weight, bias, stride, padding, dilation, groups, f"conv{dims}d")

    return call


def _named() -> dict[str, Callable[..., Any]]:
    q = _quantized_ops
    named: dict[str, Callable[..., Any]] = {
        "cat": cat,
        "linear": _product(False),
        "linear_dynamic": _dynamic(False),
        "linear_prepack": linear_prepack,
        "linear_relu": _product(True),
        "linear_relu_dynamic": _dynamic(True),
        "matmul": matmul,
    }
    for name, function, by_number in (
        ("add", q.add, q.add_scalar),
        ("mul", q.mul, q.mul_scalar),
    ):
        for end, relu in (("", False), ("_relu", True)):
            for full in (f"{name}{end}", f"{name}_scalar{end}"):
                named[full] = _sum_or_product(function, by_number, relu)
    for dims in (2, 3):
        named[f"conv{dims}d"] = _product(False)
        named[f"conv{dims}d_relu"] = _product(True)
        named[f"conv{dims}d_prepack"] = _conv_prepack(dims)
    for name in ("celu", "elu", "group_norm", "hardswish", "instance_norm", "layer_norm"):
        named[name] = _by_floats(getattr(F, name))
    for name in ("leaky_relu", "prelu", "sigmoid", "softmax", "dropout"):
        named[name] = _by_floats(getattr(F, name))
    return named


def function_of(name: str) -> Callable[..., Any] | None:
    """Returns the function that torch.ops.quantized has by a name, None for none."""
    if not _functions:
        _functions.update(_named())
        for each, function in _functions.items():
            function.__name__ = function.__qualname__ = each
            function.__module__ = "rushlight.ops.quantized"
    return _functions.get(name)


_functions: dict[str, Callable[..., Any]] = {}
