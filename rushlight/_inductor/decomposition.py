"""Forms of ops in terms of others, for a compiler that is not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["register_decomposition"]


def register_decomposition(ops: Any) -> Callable[[F], F]:
    """Makes a decorator that returns the function as it is: ops run in their own form.

    Args:
        ops: the ops that the function is a form of.
    """
    return lambda form: form
