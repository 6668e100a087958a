"""Context managers that are decorators, under the names that libraries import from PyTorch.

Owns context_decorator; the classes are bases of the modes of autograd, in _grad_mode.py.
"""

from __future__ import annotations

from rushlight._grad_mode import (
    _DecoratorContextManager,
    _NoParamDecoratorContextManager,
    decorated,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rushlight._grad_mode import F

__all__ = [
    "_DecoratorContextManager",
    "_NoParamDecoratorContextManager",
    "context_decorator",
]


def context_decorator(ctx: Any, func: F) -> F:
    """Returns a function, or a generator function, that runs in a context.

    Args:
        ctx: a context manager that can be entered again and again, or a function that makes one.
        func: the function.

    Raises:
        RuntimeError: if func is a class.

    Example:
        >>> from rushlight.utils._contextlib import context_decorator
        >>> context_decorator(torch.no_grad, torch.is_grad_enabled)()
        False
    """
    if isinstance(func, type):
        raise RuntimeError(
            f"context_decorator: cannot decorate class {func.__name__}; it is ambiguous whether "
            "only its constructor is meant. Decorate its __init__."
        )
    is_made = hasattr(ctx, "__enter__") and not isinstance(ctx, type)
    make: Callable[[], Any] = (lambda: ctx) if is_made else ctx
    return decorated(make, func)
