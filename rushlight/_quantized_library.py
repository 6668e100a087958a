"""torch.ops.quantized: the kernels of quantized tensors under PyTorch's names.

They take and give quantized tensors; scale and zero_point are those of the result. The layers of
torch.ao.nn.quantized and graphs of convert_fx do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, _quantized_ops
from rushlight._overridable import overridable
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


def _rounded(values: Tensor, input: Any, scale: Any, zero_point: Any) -> Tensor:
    return rl.quantize_per_tensor(values, float(scale), int(zero_point), input.dtype)


# Their parameters have PyTorch's names and order.


def hardswish(input: Any, output_scale: Any, output_zero_point: Any) -> Tensor:
    return _rounded(F.hardswish(input.dequantize()), input, output_scale, output_zero_point)


def elu(input: Any, output_scale: Any, output_zero_point: Any, alpha: float = 1.0) -> Tensor:
    return _rounded(F.elu(input.dequantize(), alpha), input, output_scale, output_zero_point)


def celu(input: Any, output_scale: Any, output_zero_point: Any, alpha: float = 1.0) -> Tensor:
    return _rounded(F.celu(input.dequantize(), alpha), input, output_scale, output_zero_point)


def leaky_relu(
    qx: Any,
    negative_slope: float = 0.01,
    inplace: bool = False,
    output_scale: Any = 1.0,
    output_zero_point: Any = 0,
) -> Tensor:
    values = F.leaky_relu(qx.dequantize(), negative_slope)
    return _rounded(values, qx, output_scale, output_zero_point)


def sigmoid(qx: Any, output_scale: Any, output_zero_point: Any) -> Tensor:
    return _rounded(qx.dequantize().sigmoid(), qx, output_scale, output_zero_point)


def softmax(qx: Any, dim: int, output_scale: Any, output_zero_point: Any) -> Tensor:
    return _rounded(F.softmax(qx.dequantize(), dim), qx, output_scale, output_zero_point)


def prelu(qx: Any, weight: Any, output_scale: Any, output_zero_point: Any) -> Tensor:
    values = F.prelu(qx.dequantize(), weight.dequantize())
    return _rounded(values, qx, output_scale, output_zero_point)


def dropout(
    input: Any, output_scale: Any, output_zero_point: Any, p: float = 0.5, training: bool = False
) -> Tensor:
    values = F.dropout(input.dequantize(), p, training)
    return _rounded(values, input, output_scale, output_zero_point)


def layer_norm(
    input: Any,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    output_scale: Any = 1.0,
    output_zero_point: Any = 0,
) -> Tensor:
    values = F.layer_norm(input.dequantize(), normalized_shape, weight, bias, eps)
    return _rounded(values, input, output_scale, output_zero_point)


def group_norm(
    qx: Any,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    output_scale: Any = 1.0,
    output_zero_point: Any = 0,
) -> Tensor:
    values = F.group_norm(qx.dequantize(), num_groups, weight, bias, eps)
    return _rounded(values, qx, output_scale, output_zero_point)


def instance_norm(
    qx: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    output_scale: Any = 1.0,
    output_zero_point: Any = 0,
) -> Tensor:
    values = F.instance_norm(qx.dequantize(), weight=weight, bias=bias, eps=eps)
    return _rounded(values, qx, output_scale, output_zero_point)


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


@overridable
def quantized_batch_norm(
    input: Any,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Tensor:
    """Returns the batch norm of a quantized tensor by given statistics, in a form of its own.

    Args:
        input: quantized, (N, C, ...).
        weight: (C,), or None.
        bias: (C,), or None.
        mean: (C,).
        var: (C,).
        eps: added to var.
        output_scale: of the result.
        output_zero_point: of the result.

    Example:
        >>> x = torch.quantize_per_tensor(torch.tensor([[1.0, 2.0]]), 0.5, 0, torch.quint8)
        >>> zeros, ones = torch.zeros(2), torch.ones(2)
        >>> torch.quantized_batch_norm(x, ones, zeros, zeros, ones, 0.0, 0.5, 1).int_repr()
        tensor([[3, 5]], dtype=torch.uint8)
    """
    values = F.batch_norm(input.dequantize(), mean, var, weight, bias, False, 0.0, eps)
    return _rounded(values, input, output_scale, output_zero_point)


def _max_pool(dims: int) -> Callable[..., Tensor]:
    pool = getattr(F, f"max_pool{dims}d")

    def call(
        input: Any,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        if not input.is_quantized:
            raise RuntimeError(f"{call.__name__}: expected a quantized tensor, got {input.dtype}.")
        return pool(input, kernel_size, stride or None, padding, dilation, ceil_mode)

    call.__name__ = call.__qualname__ = f"quantized_max_pool{dims}d"
    call.__doc__ = (
        f"Returns torch.nn.functional.max_pool{dims}d of a quantized tensor, in its form."
    )
    return overridable(call)


quantized_max_pool1d = _max_pool(1)
quantized_max_pool2d = _max_pool(2)
quantized_max_pool3d = _max_pool(3)


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
    by_floats = (
        celu, dropout, elu, group_norm, hardswish, instance_norm, layer_norm, leaky_relu, prelu,
        sigmoid, softmax,
    )  # fmt: skip
    return {**named, **{each.__name__: each for each in by_floats}}


_functions = _named()
for _name, _function in _functions.items():
    _function.__name__ = _function.__qualname__ = _name
globals().update(_functions)  # where pickles find them


def function_of(name: str) -> Callable[..., Any] | None:
    """Returns the function that torch.ops.quantized has by a name, None for none."""
    return _functions.get(name)
