"""Marks for functions that other processes call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["async_execution"]


def async_execution(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a function answer later: it returns a Future, whose result is the answer.

    No thread waits meanwhile.

    Args:
        fn: returns a Future when another process calls it.
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapper.answers_later = True  # pyright: ignore[reportAttributeAccessIssue]
    return wrapper
