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

__all__ = ["asks", "asks_itself", "function_of", "overridable"]

_ASKING: set[Any] = set()

# What __torch_function__ is told of operators that are methods of no function's name.
_OPERATORS = {
    "__and__": "bitwise_and",
    "__eq__": "eq",
    "__floordiv__": "floor_divide",
    "__iand__": "bitwise_and_",
    "__ilshift__": "bitwise_left_shift_",
    "__invert__": "bitwise_not",
    "__ior__": "bitwise_or_",
    "__ipow__": "pow_",
    "__irshift__": "bitwise_right_shift_",
    "__ixor__": "bitwise_xor_",
    "__lshift__": "bitwise_left_shift",
    "__or__": "bitwise_or",
    "__pow__": "pow",
    "__rshift__": "bitwise_right_shift",
    "__xor__": "bitwise_xor",
}
_by_operator: dict[Any, Any] = {}


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


def function_of(func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function that does what a method or operator does, torch.add for Tensor.add.

    __torch_function__ is told which of them a program called. Classes of ours that do the same for
    all of them ask for the function; what has none comes back as it is.
    """
    if not _by_operator:
        methods = _C.ops("Tensor")
        for name, method in _OPERATORS.items():
            _by_operator[getattr(_C.TensorBase, name)] = _C._function_of(methods[method])
    func = getattr(func, "_computes_with", func)  # of an operator of torch.ops.aten
    return _by_operator.get(func) or _C._function_of(func)


def asks_itself(function: F) -> F:
    """Notes that a function asks the classes of its arguments in its own code."""
    _ASKING.add(function)
    return function


def asks(function: Callable[..., Any]) -> bool:
    """Returns whether a function written in Python lets classes take it over as a whole."""
    return function in _ASKING
