"""Counts of the multiplications that a forward does in matrix products and convolutions.

Owns what a call of an op costs, by the shapes of its arguments and result. An op with a product is
counted where a module calls it, whatever it is made of; all others cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rushlight import Tensor
from rushlight.overrides import TorchFunctionMode


def _linear(result: Any, input: Tensor, weight: Tensor, *rest: Any) -> int:
    return result.numel() * weight.shape[-1]


def _product(result: Any, a: Tensor, b: Tensor, *rest: Any) -> int:
    return result.numel() * a.shape[-1]


def _added_product(result: Any, c: Tensor, a: Tensor, b: Tensor, *rest: Any) -> int:
    return _product(result, a, b)


def _batch_of_products(result: Any, c: Tensor, a: Tensor, b: Tensor, *rest: Any) -> int:
    return result.numel() * a.shape[0] * a.shape[-1]


def _convolution(result: Any, input: Tensor, weight: Tensor, *rest: Any) -> int:
    return result.numel() * weight[0].numel()  # (in / groups) * kernel


def _transposed_convolution(result: Any, input: Tensor, weight: Tensor, *rest: Any) -> int:
    return input.numel() * weight[0].numel()  # (out / groups) * kernel


def _bilinear(result: Any, a: Tensor, b: Tensor, weight: Tensor, *rest: Any) -> int:
    return result.numel() * weight[0].numel()


def _attention(result: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> int:
    return math.prod(query.shape[:-1]) * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _einsum(result: Any, equation: Any, *operands: Any) -> int:
    """All sizes multiplied, as one loop over all labels would do."""
    if not isinstance(equation, str):
        return 0
    tensors = operands[0] if isinstance(operands[0], (list, tuple)) else operands
    sizes: dict[str, int] = {}
    inputs = equation.replace(" ", "").partition("->")[0].split(",")
    if len(inputs) < 2 or "..." in equation:
        return 0
    for labels, tensor in zip(inputs, tensors, strict=True):
        sizes.update(zip(labels, tensor.shape, strict=True))
    return math.prod(sizes.values())


def _recurrent(result: Any, input: Tensor, *rest: Any) -> int:
    """Each step of each sequence multiplies with all weights once."""
    weights = [part for part in rest if isinstance(part, (list, tuple))][-1]
    return math.prod(input.shape[:-1]) * sum(w.numel() for w in weights if w.ndim == 2)


def _cell(result: Any, input: Tensor, hidden: Any, w_ih: Tensor, w_hh: Tensor, *rest: Any) -> int:
    return math.prod(input.shape[:-1]) * (w_ih.numel() + w_hh.numel())


_COSTS: dict[str, Callable[..., int]] = {
    "linear": _linear,
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "vdot", "__matmul__"), _product),
    **dict.fromkeys(("addmm", "addmv", "baddbmm"), _added_product),
    "addbmm": _batch_of_products,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(
        ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed_convolution
    ),
    "bilinear": _bilinear,
    "scaled_dot_product_attention": _attention,
    "einsum": _einsum,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
    **dict.fromkeys(("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"), _cell),
}


# The order of arguments that are given by name.
_PLACES = {
    name: place
    for place, names in enumerate(
        (
            ("input", "query", "equation", "input1"),
            ("mat1", "batch1", "mat", "key", "input2"),
            ("weight", "other", "mat2", "batch2", "vec", "value"),
        )
    )
    for name in names
}


def multiply_adds(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> int | None:
    """How many multiplications a call did; None for a function that is not counted."""
    cost = _COSTS.get(getattr(function, "__name__", ""))
    if cost is None:
        return None
    first = result[0] if isinstance(result, tuple) else result
    named = sorted(kwargs, key=lambda name: _PLACES.get(name, 3))
    return cost(first, *args, *(kwargs[name] for name in named))


class MultiplyAdds(TorchFunctionMode):
    """Adds up the multiplications of the ops in a block.

    Attributes:
        total: the sum so far.
    """

    _hears_attributes = False

    def __init__(self) -> None:
        self.total = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))  # what it is made of is not counted again
        self.total += multiply_adds(func, args, kwargs or {}, result) or 0
        return result
