"""What of torch.func looks behind transforms, and what an eager framework has no work for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import _C, Tensor

__all__ = ["debug_unwrap", "functionalize"]


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor behind one that a transform made: all samples of vmap, or the value of jvp.

    For looking at values while a function runs; what is computed from it is cut off from the
    transform.

    Args:
        tensor: any; one that no transform made is returned as it is.
        recurse: goes down to the plain tensor, through all levels; else through one.

    Example:
        >>> def func(x):
        ...     print(torch.func.debug_unwrap(x))
        ...     return 2 * x
        >>> torch.func.vmap(func)(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
        tensor([2., 4.])
    """
    while (lift := _C._lift_of(tensor)) is not None:
        tensor = lift[2]
        if not recurse:
            break
    return tensor


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Makes a function of the same results; in Rushlight, whose ops run at once, func itself.

    PyTorch replaces ops that write in place by others, for its tracers; there are none here.

    Args:
        func: any function.
        remove: "mutations" or "mutations_and_views".

    Raises:
        RuntimeError: when called, if remove is something else.

    Example:
        >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.zeros(2))
        tensor([1., 1.])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if remove not in ("mutations", "mutations_and_views"):
            raise RuntimeError(
                f"functionalize(f, remove={remove!r}): received invalid argument for remove. Valid "
                "options are 'mutations' and 'mutations_and_views'."
            )
        return func(*args, **kwargs)

    return wrapper
