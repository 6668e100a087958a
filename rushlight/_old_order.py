"""Sums of products in the order of early versions of PyTorch, with numbers before the tensors.

add, sub, addcmul and addcdiv have overloads for theirs.
"""

from __future__ import annotations

import warnings

from rushlight import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["in_old_order"]


def in_old_order(function: Callable[..., Any], args: tuple[Any, ...], options: Any) -> Any:
    """Returns what a function gives for beta (and alpha) among its first three arguments.

    NotImplemented if that is not how they stand: as a function f(beta, input, alpha, a, b), as a
    method input.f(beta, alpha, a, b), without alpha too.
    """
    *first, left, right = args
    tensors = [arg for arg in first if isinstance(arg, Tensor)]
    numbers = [arg for arg in first if isinstance(arg, (int, float, complex))]
    products_last = isinstance(left, Tensor) and isinstance(right, Tensor)
    if not products_last or len(tensors) != 1 or len(numbers) != len(first) - 1:
        return NotImplemented
    name = function.__name__
    warnings.warn(
        f"This overload of {name} is deprecated: pass beta and alpha by name, after the tensors.",
        UserWarning,
        stacklevel=2,
    )
    factors = dict(zip(("beta", "alpha"), numbers, strict=False))
    return function(*tensors, left, right, **factors, **options)
