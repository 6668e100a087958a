"""How far the results of a smaller network are from those of the original."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor

__all__ = ["compute_cosine_similarity", "compute_normalized_l2_error", "compute_sqnr"]


def _of_floats(measure: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Any, Any], Any]:
    """Takes tuples and lists of results, and quantized ones; of other dtypes than float32 None."""

    @functools.wraps(measure)
    def call(x: Any, y: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return [call(*pair) for pair in zip(x, y, strict=True)]
        x, y = (each.dequantize() if each.is_quantized else each for each in (x, y))
        return measure(x, y) if x.dtype == y.dtype == rl.float32 else None

    return call


@_of_floats
def compute_sqnr(x: Tensor, y: Tensor) -> Tensor:
    """Returns the ratio of signal to noise in decibels: 20 log10(|x| / |x - y|).

    Args:
        x: the result of the original; or a tuple or list of results.
        y: the other one.

    Example:
        >>> from rushlight.ao.ns.fx.utils import compute_sqnr
        >>> compute_sqnr(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 3.5]))
        tensor(20.)
    """
    return 20 * rl.log10(x.norm() / (x - y).norm())


@_of_floats
def compute_normalized_l2_error(x: Tensor, y: Tensor) -> Tensor:
    """Returns the distance over the length of the original: |x - y| / |x|.

    Args:
        x, y: those of compute_sqnr.
    """
    return (x - y).norm() / x.norm()


@_of_floats
def compute_cosine_similarity(x: Tensor, y: Tensor) -> Tensor:
    """Returns the cosine of the angle between the two, in a tensor of one element.

    Args:
        x, y: those of compute_sqnr.
    """
    return rl.nn.functional.cosine_similarity(x.reshape(1, -1), y.reshape(1, -1))
