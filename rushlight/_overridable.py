"""Lets classes with __torch_function__ take over a function that is written in Python as a whole.

Ops ask the classes of their arguments by themselves. A function made of several ops would hand over
each of them, which is what modes want to see, but not tracers and other classes.
"""

from __future__ import annotations

from functools import update_wrapper
from types import FunctionType

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["asks", "asks_itself", "overridable"]

_ASKING: set[Any] = set()


def overridable(function: F) -> F:
    """Returns the function, which asks the classes of its arguments before it runs.

    Modes are not asked: they see the ops inside.
    """
    body: Any = function
    is_taken_over, call_taken_over = _C._argument_takes_over, _C._call_taken_over

    def asking(*args: Any, **kwargs: Any) -> Any:
        if is_taken_over(args, kwargs):
            return call_taken_over(asking, args, kwargs)
        return body(*args, **kwargs)

    # With the globals of the function's own module, where doctest looks for what it defines.
    asking = FunctionType(asking.__code__, body.__globals__, closure=asking.__closure__)
    update_wrapper(asking, body)
    return asks_itself(asking)  # pyright: ignore[reportReturnType]


def asks_itself(function: F) -> F:
    """Notes that a function asks the classes of its arguments in its own code."""
    _ASKING.add(function)
    return function


def asks(function: Callable[..., Any]) -> bool:
    """Returns whether a function written in Python lets classes take it over as a whole."""
    return function in _ASKING
